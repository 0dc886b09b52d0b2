// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/draw.h"
#include "replay/phases.h"
#include "replay/plan.h"
#include "replay/replay.h"
#include "replay/supervisor_device.h"
#include "replay/timing.h"
#include "replay/worker_process.h"

namespace kjudge {

inline std::size_t arm_index(ArmName arm) { return static_cast<std::size_t>(arm); }

// A wrong output of the submission, or a clock not to be believed: the end of measuring. The facts
// are stored already.
struct Concluded {};

// What measure() does, step by step; the method is told in supervisor.cc.
class Measurement {
 public:
  Measurement(const Driver& driver, const Challenge& challenge, const ReplayOptions& options,
              const ReportProgress& progress, Evaluation& evaluation);

  void set_up(const BundleReader* reference, const BundleReader& baseline,
              const BundleReader& submission);
  void check_first();
  void run_rounds();
  void check_means();
  void judge_clocks();
  void conclude(const ArmFailed& failed);
  void explain(DriverError& error);
  void finish();

 private:
  using Workers = std::array<std::unique_ptr<Worker>, 2>;  // by ArmName
  struct Replay {
    Worker::Replayed result;
    std::uint64_t poison = 0;
  };

  void tick() const {
    if (progress_) progress_(now_);
  }
  void say(const std::string& step, std::size_t shape);
  std::string in_shape(std::size_t shape) const {
    return cat("shape ", shapes_[shape]->name, ": ");
  }

  void store_phases();
  void copy_memory();
  Workers start_workers(const PlannedRound& plan);
  template <class Body>
  void with_second_try(const Body& body);

  // What a check is about. Round and pair are 0 before the rounds.
  struct Place {
    std::size_t shape = 0, regime = 0;
    int round = 0, pair = 0;
  };
  // Inputs of the n-th replay there, in the pair as it is taken after so many voids.
  void fill_hidden(const Place& place, int voids, int n);
  void prove_inputs(const Place& place);
  void expect(std::size_t shape);
  Replay replay(Worker& worker, std::size_t shape, ReplayCache cache);
  void check_outputs(Worker& worker, const Place& place, std::uint64_t poison);
  void check_inputs(const Place& place);
  void check_baseline(const Workers& workers, const Place& place);
  void wrong(const Place& place, CheckFailure failure, const std::string& message);
  void distrust(std::size_t shape, const std::string& cause);

  void self_check(const Workers& workers, ArmName arm, std::size_t shape);
  void check_hidden(const Workers& workers, std::size_t shape);
  void prove_expected(Worker& baseline, const Place& place);
  void fix_replays(Worker& baseline, std::size_t shape);

  void run_round(int round, const PlannedRound& plan, const std::string& retaken);
  void warm_up(Workers& workers, std::size_t shape);
  RoundClock come_to_steady_clock();
  SupervisorDevice::Spin spin();
  void sample(RoundClock& clock);
  void observe(RoundFacts& round);
  Pair take_pair(Workers& workers, RoundClock& clock, std::size_t shape, const PlannedPair& plan,
                 double tick_ns, int round, int number);
  // One attempt; returns why it does not count.
  std::optional<std::string> attempt(Workers& workers, std::size_t shape, const PlannedPair& plan,
                                     double tick_ns, int round, Pair& pair, int number);

  const Driver& driver_;
  const Challenge& challenge_;
  const ReplayOptions& options_;
  const ReportProgress& progress_;
  Evaluation& evaluation_;
  PhaseClock phases_;
  Progress now_;
  Draw draw_;
  std::vector<const Shape*> shapes_;                          // tests first
  std::vector<std::vector<std::vector<PlannedPair>>> plans_;  // by shape, round
  std::vector<ShapeFacts> facts_;
  std::vector<bool> reached_;
  std::size_t current_ = 0;
  int pairs_done_ = 0, pairs_planned_ = 0;
  int take_ = 0;                 // how often the round was begun before
  bool others_counted_ = false;  // other processes on the GPU, in this round
  std::array<unsigned, 2> starts_ = {0, 0}, odd_ends_ = {0, 0};  // by ArmName
  std::string note_;
  std::unique_ptr<SupervisorDevice> side_;
};

// A worker that ended without a word may have been killed by something else. It gets a second try,
// with fresh workers for both arms; the second such end is the arm's own.
template <class Body>
void Measurement::with_second_try(const Body& body) {
  std::string retaken;
  for (take_ = 0;; ++take_) {
    try {
      return body(retaken);
    } catch (const ArmFailed& failed) {
      if (failed.cause != ArmFailed::Cause::odd_end || ++odd_ends_[arm_index(failed.arm)] > 1)
        throw;
      retaken = failed.what();
    }
  }
}

}  // namespace kjudge
