// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "replay/evaluation.h"

namespace kjudge {

// The middle value, or the mean of the two; 0 of nothing.
double median(std::vector<double> values);

// 1.4826 x the median distance from the median: the standard deviation of a normal distribution,
// whatever the outliers.
double robust_deviation(const std::vector<double>& values);

// m: how often a short shape is replayed for one time of an arm, from the baseline's length.
int replays_per_arm(double baseline_ns);

// Event <= stamp <= host <= supervisor, each within a clock tick and what a float of milliseconds
// (cuEventElapsedTime) can hold. Says which two are out of order.
std::optional<std::string> out_of_order(const Clocks& clocks, double tick_ns);

// What the slack between two clocks may differ between the arms, for causes outside the kernels.
double slack_allowance_ns(DriverKind kind, double baseline_ns, double submission_ns);

// Whether the slack between neighboring clocks differs between the arms of `shape` by more than
// the allowance and noise. Says nothing about fewer than kSlackPairs pairs.
inline constexpr std::size_t kSlackPairs = 10;
std::optional<std::string> suspicious_slack(const ShapeFacts& shape, DriverKind kind);

// The void rule's clock: the calibration kernel's samples of one round.
class RoundClock {
 public:
  explicit RoundClock(DriverKind kind) : kind_(kind) {}

  // `cycles` and `ns` of one run of the calibration kernel.
  void add(double cycles, double ns);
  std::size_t samples() const { return speeds_.size(); }
  // True when the last few samples agree: the device has come to a steady clock.
  bool steady() const;
  // Why the last sample is off the round's median; nullopt while fewer than 5 samples are known.
  std::optional<std::string> off() const;

 private:
  DriverKind kind_;
  std::vector<double> speeds_;
};

// The void rule. A pair is void only for a cause outside the arms. It is taken again whole, at most
// kMaxVoids times; each cause is recorded. After the last, a slow clock or another process on the
// GPU is what this machine has, and the pair counts: both its arms ran beside it. Fault::device
// when the last attempt itself gave no times.
inline constexpr int kMaxVoids = 3;
using VoidCause = std::optional<std::string>;
struct VoidCauses {
  std::function<VoidCause()> before;   // the device is off its clock
  std::function<VoidCause()> attempt;  // takes the pair; what came up so that it has no times
  std::function<VoidCause()> after;    // what came up while its times were taken
};
void take_until_counted(Pair& pair, const VoidCauses& causes);

}  // namespace kjudge
