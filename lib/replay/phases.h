// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "error.h"
#include "replay/evaluation.h"

namespace kjudge {

// Wall seconds of a measurement by step; what no step claims is "other".
class PhaseClock {
  using Clock = std::chrono::steady_clock;

 public:
  static constexpr std::array<std::string_view, 11> kSteps = {"start",
                                                              "warm",
                                                              "fill",
                                                              "reference",
                                                              "restore",
                                                              "evict",
                                                              "kernel (baseline)",
                                                              "kernel (submission)",
                                                              "copy",
                                                              "check",
                                                              "calibrate"};

  void add(std::string_view step, double seconds) {
    const auto found = std::find(kSteps.begin(), kSteps.end(), step);
    KJ_CHECK(found != kSteps.end());
    seconds_[static_cast<std::size_t>(found - kSteps.begin())] += seconds;
  }

  // Adds what passes until the returned object goes.
  class Timer {
   public:
    Timer(PhaseClock& clock, std::string_view step) : clock_(clock), step_(step) {}
    ~Timer() { clock_.add(step_, since(start_)); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    PhaseClock& clock_;
    std::string_view step_;
    Clock::time_point start_ = Clock::now();
  };
  Timer time(std::string_view step) { return Timer(*this, step); }

  std::vector<Phase> finish() const {
    std::vector<Phase> phases;
    double other = since(start_);
    for (std::size_t i = 0; i < kSteps.size(); ++i) {
      phases.push_back({std::string(kSteps[i]), seconds_[i]});
      other -= seconds_[i];
    }
    phases.push_back({"other", std::max(0.0, other)});
    return phases;
  }

 private:
  static double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  Clock::time_point start_ = Clock::now();
  std::array<double, kSteps.size()> seconds_{};
};

}  // namespace kjudge
