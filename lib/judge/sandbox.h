// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "file.h"
#include "process.h"

namespace kjudge {

// Beside the system, Python and kjudge's own files, which everybody inside can read.
struct SandboxFiles {
  std::vector<std::filesystem::path> readable;
  std::vector<std::filesystem::path> writable;  // folders; as root they become the inner user's
  std::uint64_t file_bytes = 0;                 // the largest file that may be written
};

// Where a contestant's processes run: in namespaces of their own (bubblewrap), without a network,
// without the judge's files, environment and processes, with a private /tmp that is HOME too, one
// GPU at most, limits, and a seccomp filter. Root's sandbox runs as a user of its own that no other
// sandbox on the machine has at the same time; anybody else's as that user.
class Sandbox {
 public:
  struct Wanted {
    const Driver& driver;
    int device = 0;
    // Folders, also where the system shows them; but not what Python and the driver need of them.
    std::vector<std::filesystem::path> hidden;
  };
  // Tries it. Fault::device when something is missing: what, and what to do.
  explicit Sandbox(const Wanted& wanted);

  // As run_to_end(); when it returns, all processes that the child started have been reaped. The
  // child's environment is what its options name and little more. Fault::host when it was not
  // started for a cause that is not the child's.
  Finished run(const ChildOptions& options, const SandboxFiles& files,
               std::chrono::duration<double> limit, std::size_t output_limit,
               const std::function<bool()>& tick = {}) const;

  // The number that the device has inside.
  int inner_device() const { return inner_device_; }
  // "bubblewrap 0.8.0, uid 60001, cgroup v1: memory, pids".
  std::string describe() const;

 private:
  void find_programs();
  void find_python();
  void find_libraries(const Driver& driver);
  void find_device(const Driver& driver, int device);
  void take_uid();
  void try_out() const;
  void show(const std::filesystem::path& path);
  bool shown(const std::filesystem::path& path) const;

  std::filesystem::path bwrap_, prlimit_;
  std::string version_;
  std::vector<std::filesystem::path> readable_, needed_, hidden_, devices_;
  std::map<std::string, std::string> environment_;
  int inner_device_ = 0;
  uid_t uid_ = 0;  // that root becomes; 0: nobody is root here
  Fd uid_lock_;
  Fd filter_;
};

}  // namespace kjudge
