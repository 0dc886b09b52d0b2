// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "challenge/variant_request.h"
#include "score/rank.h"
#include "store/records.h"
#include "store/selection.h"

namespace kjudge {

// What organizers say about results, as records (store/records.h).

// A reference entry without code that was judged here, or a claim that nobody verified: shown
// beside the ranking and marked, never ranked.
struct Bar {
  std::string name;
  VariantRequest variant;
  double speedup = 0;                                    // over the baseline; 0: not said
  std::vector<std::pair<std::string, double>> times_us;  // by shape
  enum class Basis { measured, claimed } basis = Basis::claimed;
  std::string source, date;  // where the numbers are from, and of when
  std::string made;          // UTC, RFC 3339
  int takes_back = 0;  // number of the bar that this record removes; then nothing else is said
};
const FieldTable<Bar>& bar_table();
// Whether it is shown with the ranking of these terms over these shapes.
bool is_of(const Bar& bar, const Terms& terms, const std::string& dtype, const std::string& shape);
// Its speedup: as it says, or from its times and the baseline's in `score` where it has one for
// every shape; nullopt where that is not known.
std::optional<double> bar_speedup(const Bar& bar, const Score& score);
inline constexpr const char* kBarRecord = "bar";

// Evaluations that do not count. A selection names one, or ends in time, so that what is judged
// after it counts again.
struct Invalidation {
  Selection selection;
  std::string reason;  // shown wherever the evaluation is
  std::string made;
  int takes_back = 0;
};
const FieldTable<Invalidation>& invalidation_table();
inline constexpr const char* kInvalidationRecord = "invalidation";

// The reasons why an evaluation does not count; none: it does.
std::vector<std::string> invalid_reasons(const Records<Invalidation>& standing,
                                         const Selectable& one);

// Ids of the evaluations that do not count for some submission, whose copies may count for others.
// Refers to `index`.
std::set<std::string_view> invalid_ids(const Records<Invalidation>& standing,
                                       const ScoreIndex& index);

// A play-off. results/N.json in its folder is the result of the Nth of `others`, counted from 1:
// its bundle against that of the best one in the baseline's place.
struct PlayOffMember {
  int submission = 0, evaluation = 0;
  std::string id, run;
};
struct PlayOff {
  PlayOffMember best;
  std::vector<PlayOffMember> others;
  std::string made;
  std::vector<PlayOffMember> absent = {};  // of the same group, without a recording to replay
};
const FieldTable<PlayOff>& play_off_table();
inline constexpr const char* kPlayOffRecord = "playoff";
// With their results, in the order of `others`. Reports what cannot be read, which does not count.
struct PlayOffFacts {
  int number = 0;
  PlayOff record;
  std::vector<Evaluation> results;
};
std::vector<PlayOffFacts> read_play_off_facts(const ResultsDirectory& results,
                                              const ResultsDirectory::Report& report);
// The result of one of `others` is of its submission.
Selectable selectable(const PlayOffMember& member, const Evaluation& facts);
// With the scores of their results. One with a result that is invalid decides nothing.
std::vector<PlayedOff> read_play_offs(const ResultsDirectory& results,
                                      const Records<Invalidation>& invalidations,
                                      const ResultsDirectory::Report& report);

}  // namespace kjudge
