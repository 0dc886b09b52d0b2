// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/standings.h"

namespace kjudge {

// Standings for people; for programs they are in judge/rank_json.h.

// What is known of an entry beside its score.
struct AboutEntry {
  std::string label, license, code;
  std::optional<bool> target_met;
};
AboutEntry about_entry(const Entry& entry, const VariantStandings& standings,
                       const ScoreIndex& index);
// What is hoped for and to be won; none for a part of the challenge, or where that is not kept.
std::optional<double> target_of(const VariantStandings& standings);
std::string bounty_of(const VariantStandings& standings);
std::optional<double> speedup_of(const Bar& bar, const VariantStandings& standings);

// "softmax version 1, NVIDIA H200, method 1"
std::string standings_title(const VariantStandings& standings);
// A row for each run, best first, with the bars among them; then those that are pending.
std::string standings_table(const VariantStandings& standings, const ScoreIndex& index);
// Lines about what does not count and why, and about what else could be asked for.
std::vector<std::string> standings_remarks(const VariantStandings& standings);
std::string history_table(const std::vector<HistoryEntry>& history);
}  // namespace kjudge
