// SPDX-License-Identifier: Apache-2.0
#include "replay/timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "error.h"

namespace kjudge {
namespace {

std::string microseconds(double ns) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3f us", ns / 1e3);
  return text.data();
}

struct ClockPair {
  const char* inner;
  const char* outer;
  double Clocks::*inner_ns;
  double Clocks::*outer_ns;
};

constexpr std::array<ClockPair, 3> kClockPairs = {{
    {"event", "stamp", &Clocks::event_ns, &Clocks::stamp_ns},
    {"stamp", "worker's host", &Clocks::stamp_ns, &Clocks::host_ns},
    {"worker's host", "supervisor's", &Clocks::host_ns, &Clocks::supervisor_ns},
}};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double robust_deviation(const std::vector<double>& values) {
  const double center = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - center));
  return 1.4826 * median(std::move(distances));
}

int replays_per_arm(double baseline_ns) {
  if (baseline_ns < 30e3) return 5;
  if (baseline_ns < 300e3) return 3;
  return 1;
}

std::optional<std::string> out_of_order(const Clocks& clocks, double tick_ns) {
  for (const ClockPair& pair : kClockPairs) {
    const double inner = clocks.*pair.inner_ns, outer = clocks.*pair.outer_ns;
    if (!(inner >= 0) || !std::isfinite(inner) || !std::isfinite(outer)) {
      return cat("the ", pair.inner, " clock gave no time");
    }
    const double rounding = clocks.event_ns * 0x1p-23;
    if (inner > outer + tick_ns + rounding) {
      return cat("the ", pair.inner, " clock gave ", microseconds(inner), ", the ", pair.outer,
                 " clock around it only ", microseconds(outer));
    }
  }
  return std::nullopt;
}

// On a GPU nothing but the two timing kernels and the launch lies between the clocks: 1 us, the
// design's bound. The processor's clocks also see how long it waited (caches and power states go
// cold): 19 us more for 20 ms than for 4 us on an H200, so 0.2 % of the difference, which hides
// nothing worth forging.
// On the host driver the clocks outside the kernels are threads that slept meanwhile and must be
// woken on cores that the kernel just used: the medians of arms of 0.03 and 24 ms differed by up to
// 38 us on 2 virtual cores that compilers shared. 300 us is eight times that; the share of the time
// is for preemption, which longer arms meet more often. Times of the host driver are for practice
// (`trust: process`); its test is for mistakes, not for forgers.
double slack_allowance_ns(DriverKind kind, double baseline_ns, double submission_ns) {
  if (kind == DriverKind::cuda) return 1e3 + 0.002 * std::abs(baseline_ns - submission_ns);
  return 300e3 + 0.05 * std::max(baseline_ns, submission_ns);
}

// A forged clock is wrong by about the same in every replay, so it shifts the median of the paired
// differences. Noise is the spread of a single difference, not the standard error of the median:
// 3 robust deviations of one difference are 13 standard errors of a median of 30, so that honest
// noise (also skewed, also differing between rounds by as much as within them) practically never
// fails, while what a forger can hide stays within the noise that the ratios have anyway.
std::optional<std::string> suspicious_slack(const ShapeFacts& shape, DriverKind kind) {
  std::vector<double> baseline_ns, submission_ns;
  std::array<std::vector<double>, kClockPairs.size()> differences;
  double tick_ns = 0;
  for (const RoundFacts& round : shape.rounds) {
    tick_ns = std::max(tick_ns, round.clock_tick_ns);
    for (const Pair& pair : round.pairs) {
      const auto& [baseline, submission] = pair.arms;
      baseline_ns.push_back(baseline.time_ns());
      submission_ns.push_back(submission.time_ns());
      for (std::size_t c = 0; c < kClockPairs.size(); ++c) {
        const auto slack = [&](const ArmTimes& arm) {
          std::vector<double> slacks;
          for (const Clocks& clocks : arm.replays) {
            slacks.push_back(clocks.*kClockPairs[c].outer_ns - clocks.*kClockPairs[c].inner_ns);
          }
          return median(std::move(slacks));
        };
        differences[c].push_back(slack(submission) - slack(baseline));
      }
    }
  }
  if (baseline_ns.size() < kSlackPairs) return std::nullopt;

  const double allowance = slack_allowance_ns(kind, median(baseline_ns), median(submission_ns));
  for (std::size_t c = 0; c < kClockPairs.size(); ++c) {
    const double shift = median(differences[c]);
    const double limit = allowance + 2 * tick_ns + 3 * robust_deviation(differences[c]);
    if (std::abs(shift) > limit) {
      return cat("shape ", shape.name, ": between the ", kClockPairs[c].inner, " and the ",
                 kClockPairs[c].outer, " clock the submission's replays have ",
                 microseconds(std::abs(shift)), shift > 0 ? " more" : " less",
                 " than the baseline's; ", microseconds(limit), " is the most that noise explains");
    }
  }
  return std::nullopt;
}

// A GPU's sample is its clock rate; the host's the speed of a fixed spin, which also drops when
// another process or another virtual machine takes the core.
void RoundClock::add(double cycles, double ns) {
  const double work = kind_ == DriverKind::cuda ? cycles : 1;
  speeds_.push_back(ns > 0 ? work / ns : 0);
}

bool RoundClock::steady() const {
  constexpr std::size_t kLast = 5;
  if (speeds_.size() < kLast) return false;
  const auto [low, high] =
      std::minmax_element(speeds_.end() - static_cast<std::ptrdiff_t>(kLast), speeds_.end());
  return *low >= 0.98 * *high;
}

// A GPU that throttles or has not come up yet is off by 5 % at once (steps are 15 MHz of about
// 1900); a shared processor's speed varies by several percent by itself, and the pairing takes
// care of that.
std::optional<std::string> RoundClock::off() const {
  if (speeds_.size() < 5) return std::nullopt;
  const double bound = kind_ == DriverKind::cuda ? 0.95 : 0.75;
  const double usual = median(speeds_);
  if (speeds_.back() >= bound * usual) return std::nullopt;
  return cat("calibration ran at ", static_cast<int>(std::lround(100 * speeds_.back() / usual)),
             " % of the round's median speed");
}

void take_until_counted(Pair& pair, const VoidCauses& causes) {
  for (;;) {
    const bool last = pair.voids == kMaxVoids;
    VoidCause cause = causes.before();
    if (!cause || last) {
      if (VoidCause untimed = causes.attempt()) {
        if (last) {
          throw Error(Fault::device, cat(*untimed, ", ", kMaxVoids + 1,
                                         " times in a row; the machine is too busy to measure on"));
        }
        cause = std::move(untimed);
      } else {
        if (!cause) cause = causes.after();
        if (!cause || last) {
          if (cause) pair.void_causes.push_back(*cause + " (counted, after the last try)");
          return;
        }
      }
    }
    ++pair.voids;
    pair.void_causes.push_back(std::move(*cause));
  }
}

}  // namespace kjudge
