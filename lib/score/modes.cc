// SPDX-License-Identifier: Apache-2.0
#include "score/modes.h"

#include <algorithm>
#include <cmath>

#include "stats.h"

namespace kjudge {
namespace {

struct Group {
  double mean = 0, variance = 0;
};

// Of elements first .. last - 1.
Group group(const std::vector<double>& sorted, std::size_t first, std::size_t last) {
  const auto count = static_cast<double>(last - first);
  Group made;
  for (std::size_t i = first; i < last; ++i) made.mean += sorted[i] / count;
  for (std::size_t i = first; i < last; ++i) {
    const double off = sorted[i] - made.mean;
    made.variance += off * off / count;
  }
  return made;
}

struct Split {
  double d = 0;
  TwoModes modes;
};

// The cut into two groups whose distance is the most of their deviation.
std::optional<Split> best_split(std::vector<double> times, double least_distance) {
  std::sort(times.begin(), times.end());
  const std::size_t least = (times.size() + 4) / 5;
  std::optional<Split> best;
  for (std::size_t cut = least; cut + least <= times.size(); ++cut) {
    const Group low = group(times, 0, cut), high = group(times, cut, times.size());
    const double distance = high.mean - low.mean;
    if (distance < least_distance) continue;
    const double deviation = std::sqrt((low.variance + high.variance) / 2);
    const double d = deviation > 0 ? distance / deviation : INFINITY;
    if (best && d <= best->d) continue;
    best = {d, {low.mean, high.mean, static_cast<int>(cut), static_cast<int>(times.size() - cut)}};
  }
  return best;
}

}  // namespace

std::optional<TwoModes> find_two_modes(const std::vector<std::vector<double>>& times_ns,
                                       double tick_ns) {
  constexpr double kLeastD = 6;
  std::optional<Split> clearest;
  for (const std::vector<double>& times : times_ns) {
    if (times.size() < kModesSamples) continue;
    const auto split = best_split(times, std::max(0.01 * median(times), 3 * tick_ns));
    if (split && split->d >= kLeastD && (!clearest || split->d > clearest->d)) clearest = split;
  }
  return clearest ? std::optional(clearest->modes) : std::nullopt;
}

}  // namespace kjudge
