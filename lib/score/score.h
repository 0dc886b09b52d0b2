// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/evaluation.h"

namespace kjudge {

// Derives scores from the facts of an evaluation. Pure: the same facts give the same bytes anywhere.

struct Interval {
  double low = 0, high = 0;
};

struct ShapeScore {
  std::string name;
  double baseline_ns = 0, submission_ns = 0;  // geometric means over regimes of the median
  double speedup = 0;   // median paired ratio; with several regimes the geometric mean of each one's
  Interval interval;    // smallest to largest of the round medians
  bool below_floor = false;
};

struct Score {
  bool ranked = false;  // accepted, with every timed shape and all rounds there
  std::string why_not;  // when not ranked
  double speedup = 0;   // geometric mean of the shapes'
  Interval interval;    // smallest to largest of the per-round scores
  std::vector<ShapeScore> shapes;
};

Score score(const Evaluation& evaluation);

// One row of a ranking: best evaluation of a run.
struct Entry {
  std::string submission, run;
  Score score;
};
struct RankedEntry {
  Entry entry;
  int rank = 0;       // 1-based; entries of a tie group share the best rank of the group
  int tie_group = 0;  // 1-based; intervals overlap the best of their group
};
// Best first. Entries that are not ranked are left out.
std::vector<RankedEntry> rank(std::vector<Entry> entries);

}  // namespace kjudge
