// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
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

  // Adds what passes until the returned object goes, be it by an exception: then the step is the
  // failed one.
  class Timer {
   public:
    Timer(PhaseClock& clock, std::string_view step) : clock_(clock), step_(step) {
      clock.failed_ = {};
    }
    ~Timer() {
      clock_.add(step_, since(start_));
      if (std::uncaught_exceptions() > exceptions_ && clock_.failed_.empty()) {
        clock_.failed_ = step_;
      }
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    PhaseClock& clock_;
    std::string_view step_;
    int exceptions_ = std::uncaught_exceptions();
    Clock::time_point start_ = Clock::now();
  };
  Timer time(std::string_view step) { return Timer(*this, step); }

  // The step that the newest exception left; empty: none.
  std::string_view failed() const { return failed_; }

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
  std::string_view failed_;
};

}  // namespace kjudge
