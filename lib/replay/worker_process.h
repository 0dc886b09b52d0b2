// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "process.h"
#include "replay/evaluation.h"
#include "replay/protocol.h"
#include "replay/supervisor_device.h"

namespace kjudge {

// An arm's worker failed. Unwinds from wherever the supervisor waited to measure(), which alone
// makes a verdict (submission) or an Error (baseline) of it.
struct ArmFailed : std::runtime_error {
  enum class Cause {
    arm,
    // The process ended without a word, which something outside the arm may have done: worth a
    // second try, once.
    odd_end,
    machine,  // the driver refused what kjudge asked, not what the arm's kernels did
  };
  ArmFailed(ArmName its_arm, Verdict its_verdict, Cause its_cause, const std::string& message)
      : std::runtime_error(message), arm(its_arm), verdict(its_verdict), cause(its_cause) {}
  ArmName arm;
  Verdict verdict;  // of a submission; without meaning where the machine is the cause
  Cause cause;
};

struct WorkerStart {
  const Driver& driver;
  int device = 0;
  ArmName arm = ArmName::baseline;
  unsigned start = 1;  // which worker of this arm it is
  std::size_t slot = 0;
  double replay_s = 10;  // the watchdog of one replay
  std::filesystem::path program;
};

// The supervisor's side of one worker. The process is killed and reaped when this goes. Every call
// may throw ArmFailed.
class Worker {
 public:
  // Starts the process and hands it all it needs; does not wait.
  Worker(const WorkerStart& start, const SupervisorDevice& side, Channel::Idle idle);

  void wait_built();
  Calibrated calibrate(std::uint64_t seed);

  // One replay: everything up to the block kernel, then the rest.
  Armed arm(std::size_t shape, ReplayCache cache, std::uint64_t poison, std::uint64_t slots);
  struct Replayed {
    Clocks clocks;
    double copy_ns = 0;
    bool gave_up = false, disturbed = false;
  };
  Replayed release();

  ArmName arm_name() const { return start_.arm; }
  std::size_t slot() const { return start_.slot; }
  pid_t pid() const { return child_.pid(); }

 private:
  template <class T>
  T expect(std::chrono::duration<double> limit, const std::string& what,
           Channel::Clock::time_point* at = nullptr);
  template <class T>
  void send(const T& message, std::span<const int> fds = {});
  [[noreturn]] void report_death();
  [[noreturn]] void report_failure(const Failed& failed);
  [[noreturn]] void report_late(const std::string& what, std::chrono::duration<double> limit);
  [[noreturn]] void report_breach(const std::string& what);

  WorkerStart start_;
  const BoundBundle& bundle_;
  std::string shape_;  // the one being replayed, for messages
  const Graph* graph_ = nullptr;
  Channel channel_;
  Child child_;
};

}  // namespace kjudge
