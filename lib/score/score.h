// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "replay/evaluation.h"
#include "score/modes.h"

namespace kjudge {

// Derives scores from the facts of an evaluation. Pure: the same facts give the same bytes
// anywhere.

struct Interval {
  double low = 0, high = 0;
};

struct ShapeScore {
  std::string name;
  double baseline_ns = 0, submission_ns = 0;  // geometric means over regimes of the median
  double speedup = 0;  // median paired ratio; with several regimes the geometric mean of each one's
  Interval interval;   // smallest to largest of `rounds`, and of `speedup`
  bool below_floor = false;
  std::optional<double> speed_of_light;  // the floor by the submission's time; absent without one
  std::array<std::optional<TwoModes>, 2> two_modes;  // by ArmName; of all its replays
  // The steps to them.
  std::vector<std::string> regimes;    // in the order they first appear
  std::vector<double> regime_medians;  // of the ratios of all pairs, by regime
  std::vector<double> rounds;          // as `speedup`, of each round that has every regime
};

// What one of an evaluation's devices makes of it.
struct DeviceScore {
  std::string device;
  double speedup = 0;
  Interval interval;
};

struct Score {
  bool ranked = false;  // it counts, and every shape of the challenge was asked for
  bool counts = false;  // accepted, with all rounds of every timed shape that was asked for
  std::string why_not;  // when not ranked
  double speedup = 0;   // geometric mean of the shapes'
  Interval interval;    // smallest to largest of `rounds`, and of `speedup`
  std::vector<ShapeScore> shapes;
  std::vector<double> rounds;  // as `speedup`, of each round that has every shape
  // Where several devices measured, all of them, the first that of the score itself.
  std::vector<DeviceScore> devices;
  bool devices_agree = true;  // some speedup lies in the intervals of all
};

// Raised when score() makes something else of the same facts, so that no index keeps the old.
inline constexpr int kScoreRule = 2;

Score score(const Evaluation& evaluation);

// What the recording was found to be on one of the other devices, as an evaluation by itself.
Evaluation evaluation_on(const Evaluation& evaluation, const OnDevice& other);

// The score over the shapes that `names` has. Ranked where the whole counts and has all of them.
Score part_of(const Score& score, const std::vector<std::string>& names);

}  // namespace kjudge
