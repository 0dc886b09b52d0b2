// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "json_fields.h"

namespace kjudge {

// How far a submission is that waits or is being judged. Its judge writes that at each step, for
// whoever shows it, into submissions/42/claims/3/running.json; nothing else depends on it.
struct RunningEvaluation {
  enum class Step { queued, building, capturing, replaying };
  Step step = Step::queued;
  std::optional<int> ahead;          // submissions before it, while it is queued
  std::string doing;                 // while it is replayed: "checking", "round 2 of 6"
  std::string shape;                 // the one that is replayed now
  int shape_number = 0, shapes = 0;  // its place, from 1, among timed ones and tests
  double done = 0;                   // 0 .. 1 of the replays
  std::string updated;               // UTC, RFC 3339; empty: not known
};
std::string_view name(RunningEvaluation::Step step);
// For people: "queued, 2 before it", "replaying, round 2 of 6, shape 1 of 3: 64x48".
std::string text_of(const RunningEvaluation& running);
// running.json.
const FieldTable<RunningEvaluation>& running_table();

// Into a claim's folder. Fault::host.
void write_running(const std::filesystem::path& claim, const RunningEvaluation& running);
void remove_running(const std::filesystem::path& claim);

// Whether it has an open claim whose judge lives, as far as can be seen without writing.
bool is_judged(const std::filesystem::path& submission);
// nullopt: it is not, or its judge does not say how far it is.
std::optional<RunningEvaluation> read_running(const std::filesystem::path& submission);

}  // namespace kjudge
