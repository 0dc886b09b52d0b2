// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "file.h"

namespace kjudge {

// A child process in a process group of its own that dies with kjudge, with all it started.
struct ChildOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;              // without argv[0]
  std::map<std::string, std::string> environment;  // added to ours; an empty value unsets
  std::filesystem::path directory;                 // empty: ours
  std::vector<std::pair<int, int>>
      descriptors;  // (ours, theirs); 0-2 default to /dev/null, ours, ours
  // Runs in the child between fork and exec, where only system calls are safe: no allocation, no
  // lock. An errno other than 0 makes the start fail with it.
  std::function<int()> before_exec;
};

struct ExitStatus {
  int code = 0;  // when signal == 0
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
};
// "exit status 3", "killed by SIGSEGV (segmentation fault)".
std::string describe(const ExitStatus& status);

class Child {
 public:
  explicit Child(const ChildOptions& options);
  // Kills the whole group and reaps.
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  // Waits; nullopt when the deadline passed first.
  std::optional<ExitStatus> wait(std::chrono::steady_clock::time_point deadline);
  void kill();

 private:
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

// Runs to the end or the deadline; stdout and stderr together, the first and last halves of
// `output_limit` kept. `tick` is called at least every 100 ms: where it says false, that is the
// deadline; it may also throw, and the child is killed.
struct Finished {
  std::optional<ExitStatus> status;  // nullopt: killed at the deadline
  // Whether the system killed processes for want of memory meanwhile; nullopt: it does not tell.
  std::optional<bool> out_of_memory;
  std::string output;
  double seconds = 0;
};
Finished run_to_end(const ChildOptions& options, std::chrono::duration<double> limit,
                    std::size_t output_limit, const std::function<bool()>& tick = {});

}  // namespace kjudge
