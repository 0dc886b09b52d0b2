// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace kjudge {

// Times that lie around two values, not one: their median is one of the two by chance.
struct TwoModes {
  double low_ns = 0, high_ns = 0;  // means of the two groups
  int low_count = 0, high_count = 0;
};

// Looks for two modes in the times of one arm, in each regime by itself; the clearest are returned.
// nullopt where either group would have less than a fifth of a regime's times, where they are less
// than 1 % or three ticks of the clock apart, or where their distance is not at least 6 times their
// own deviation (Ashman's D): of samples of 24 from a uniform distribution about 1 in 200 look so,
// and none of 2,000 from a normal one. Regimes with fewer times are not looked at.
inline constexpr std::size_t kModesSamples = 24;
std::optional<TwoModes> find_two_modes(const std::vector<std::vector<double>>& times_ns,
                                       double tick_ns);

}  // namespace kjudge
