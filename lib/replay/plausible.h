// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace kjudge {

// What no clock of a replay, no step and no floor comes to: a day. A worker that says more lies.
inline constexpr double kMostNs = 86'400e9;

// What a GPU may say of itself; what is beyond was not said.
struct Bounds {
  double low = 0, high = 0;
  std::optional<double> keep(std::optional<double> value) const {
    return value && *value >= low && *value <= high ? value : std::nullopt;
  }
};
inline constexpr Bounds kClockMhz{0, 1e6}, kPowerW{0, 1e5}, kTemperatureC{-273, 1000};

}  // namespace kjudge
