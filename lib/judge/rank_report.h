// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json.h"
#include "store/standings.h"

namespace kjudge {

// Standings for people and programs.

// "softmax version 1, NVIDIA H200, method 1"
std::string standings_title(const VariantStandings& standings);
// A row for each run, best first, with the bars among them; then those that are pending.
std::string standings_table(const VariantStandings& standings, const ScoreIndex& index);
// Lines about what does not count and why, and about what else could be asked for.
std::vector<std::string> standings_remarks(const VariantStandings& standings);
// What `rank --json` prints.
Json standings_json(const VariantStandings& standings, const ScoreIndex& index);

std::string history_table(const std::vector<HistoryEntry>& history);
// What `rank --history --json` prints.
Json history_json(const VariantStandings& standings, const std::string& run,
                  const std::vector<HistoryEntry>& history);

}  // namespace kjudge
