// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json_fields.h"
#include "store/standings.h"

namespace kjudge {

// What `kjudge rank --json` prints; nullopt: nothing has a score yet. `left_out` are messages about
// what could not be read.
Json standings_json(const std::optional<VariantStandings>& standings, const ScoreIndex& index,
                    const std::vector<std::string>& left_out);
JsonFormat standings_json_format();

// What `kjudge rank --history --json` prints.
Json history_json(const VariantStandings& standings, const std::string& run,
                  const std::vector<HistoryEntry>& history,
                  const std::vector<std::string>& left_out);
JsonFormat history_json_format();

}  // namespace kjudge
