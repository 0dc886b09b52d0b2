// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "score/score.h"

namespace kjudge {

// From scores to standings: one row a run. The evaluations that come here are of one state of a
// challenge, one kind of GPU and one method; that is the caller's to see to.

// One evaluation that may count for its run.
struct Candidate {
  int submission = 0, evaluation = 0;
  std::string_view run, id;  // of the run, and the evaluation's UUID
  bool ranked = false, invalid = false;
  double speedup = 0;
  std::string_view started;  // UTC, RFC 3339
  // Of the submission's files, and the part of the challenge that was asked for: submissions where
  // all of it is the same are copies.
  std::string_view sha256, dtype, shape;
};

// Which candidate counts for a run.
struct Chosen {
  std::size_t candidate = 0;
  int judged = 1;  // how often its submission or a copy was, each time on inputs of its own
};
// Of each submission the last valid evaluation counts, so that one that was judged again does not
// keep the luckier of two times; of a run's copies, which are judged like one, the newest of these;
// of each run the best submission, the earlier of equal ones. `candidates` ascends by submission
// and evaluation. Runs without one that is ranked are left out.
std::vector<Chosen> choose_best(const std::vector<Candidate>& candidates);

// One row of a ranking: best evaluation of a run.
struct Entry {
  std::string submission, run;
  Score score;
  int evaluation = 1;
  std::string id = {};  // of the evaluation
  int judged = 1;       // see Chosen
};

// A play-off: the bundles of a tie group replayed with that of its best in the baseline's place.
struct PlayedOff {
  std::string best;  // id of its evaluation
  struct Other {
    std::string id;
    // Against the best's, so 1 is as fast. One that does not count: it could not be replayed, or
    // was not accepted; then it stands below those that were.
    Score score;
  };
  std::vector<Other> others;
};

// Whether the geometric mean of the submission's times over the shapes of `score` is within the
// challenge's target; nullopt where it has none.
std::optional<bool> target_met(std::optional<double> target_ns, const Score& score);

struct RankedEntry {
  Entry entry;
  int rank = 0;             // 1-based; entries of a tie group share the best rank of the group
  int tie_group = 0;        // 1-based; intervals overlap the best of their group
  bool played_off = false;  // the order among its former tie group is that of a play-off
};

struct Standings {
  std::vector<RankedEntry> ranked;  // best first
  // Faster than the first that was judged twice, and judged once themselves: a lucky time may be
  // what put them there, so they are judged again before they have a rank. Best first.
  std::vector<Entry> pending;
};
// The share by which the one before is faster; nullopt where it is not: the order of a play-off
// need not be that of the scores.
std::optional<double> behind(const Score& before, const Score& score);

// Entries that are not ranked are left out. Of several play-offs of a group the last counts.
Standings rank(std::vector<Entry> entries, const std::vector<PlayedOff>& play_offs = {});

}  // namespace kjudge
