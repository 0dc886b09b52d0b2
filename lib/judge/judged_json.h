// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json_fields.h"
#include "judge/queue.h"

namespace kjudge {

// What `kjudge judge` prints at its end, with --json or as a table.
struct JudgedRow {
  int number = 1;
  std::string run;
  Verdict verdict = Verdict::judge_error;
  std::string message;
  int same_as = 0, same_kernels_as = 0;
};
struct JudgedSummary {
  std::vector<JudgedRow> judged;
  std::vector<RefusedHandIn> refused;
};
JudgedSummary summary_of(const JudgedQueue& done);
// "kjudge-judged/1".
const FieldTable<JudgedSummary>& judged_table();

}  // namespace kjudge
