// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "json_fields.h"
#include "store/results.h"

namespace kjudge {

// Recordings are most of what a results directory takes. One that is pruned leaves a mark in its
// place, so that nobody takes it for lost; where it is needed again, the files are captured again.

struct KeepBundles {
  enum class Rule {
    all,
    best,  // those of the best submission of each run, in each contest
    days   // these, and of all others those of the last days
  };
  Rule rule = Rule::all;
  int days = 0;
};
// "all", "best" or a number of days. Fault::usage, saying what it looks like.
KeepBundles parse_keep_bundles(std::string_view text);

// pruned.json, beside an evaluation's result.
struct PrunedBundle {
  std::string sha256;  // of the recording
  std::uint64_t bytes = 0;
  std::string pruned;  // UTC, RFC 3339
  std::string rule;    // by which it was
};
const FieldTable<PrunedBundle>& pruned_table();
// The mark in an evaluation's folder; nullopt: there is none. Fault::malformed.
std::optional<PrunedBundle> read_pruned(const std::filesystem::path& evaluation);

struct PrunedCounts {
  std::size_t bundles = 0;
  std::uint64_t bytes = 0;  // of them, though other evaluations may have the same
};
// Prunes what the rule does not keep. Left alone is what is judged at the moment, and what a
// rejudgement that is open is about. Killed, it goes on where it was; any number may do so at the
// same time. `now` is UTC, RFC 3339. Reports what cannot be read, which is kept.
PrunedCounts prune_bundles(const ResultsDirectory& results, const KeepBundles& keep,
                           const std::string& now, const ResultsDirectory::Report& report);

}  // namespace kjudge
