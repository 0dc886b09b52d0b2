// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json_fields.h"
#include "store/judgements.h"

namespace kjudge {

// What `kjudge bar` and `kjudge invalidate` print with --json.

struct InvalidatedEvaluation {
  int submission = 0, evaluation = 0;
  std::string id, run;
  Verdict verdict = Verdict::judge_error;
  std::optional<int> play_off = {};  // whose result this is, made of the recording of `evaluation`
};

Json recorded_json(int number);
Json bars_json(const Records<Bar>& bars);
Json invalidations_json(const Records<Invalidation>& invalidations);
// `number` is that of the record; 0: there is none.
Json invalidated_json(int number, const std::vector<InvalidatedEvaluation>& evaluations);
std::vector<JsonFormat> records_json_formats();

}  // namespace kjudge
