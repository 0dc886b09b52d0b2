// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "json_fields.h"
#include "replay/evaluation.h"
#include "store/score_index.h"

namespace kjudge {

// Some of the evaluations of a results directory: those of which all that is given holds.
struct Selection {
  int submission = 0;      // 0: any
  std::string evaluation;  // UUID
  std::string run, challenge;
  int challenge_version = 0, method = 0;  // 0: any
  std::string node, gpu;                  // gpu as names_device() has it
  std::string from, to;                   // of the time it began, UTC, RFC 3339, both included
  bool operator==(const Selection&) const = default;
};
// Fields that are all optional.
const FieldTable<Selection>& selection_table();

// What a selection looks at.
struct Selectable {
  int submission = 0;
  std::string_view run, evaluation, challenge;
  int challenge_version = 1, method = 0;
  std::string_view node, arch, started;
  std::string device_kind;
};
Selectable selectable(const ScoreIndex& index, const ScoredSubmission& submission,
                      const ScoredEvaluation& evaluation);
// `facts` is its result.
Selectable selectable(const SubmissionIdentity& submission, const Evaluation& facts);
bool selects(const Selection& selection, const Selectable& one);

// "2026-11-30T12:00:00Z" from that or from a day, whose first or last second it is then.
// Fault::usage for anything else.
enum class DayEnd { first, last };
std::string time_of(const std::string& text, DayEnd end);

}  // namespace kjudge
