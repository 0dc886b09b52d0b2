// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json_fields.h"
#include "score/score.h"

namespace kjudge {

// What `kjudge score --json` prints.
struct ScoredFile : Score {
  std::string file, submission;
  Verdict verdict = Verdict::judge_error;
};
ScoredFile scored_file(const std::string& file, const Evaluation& evaluation);
Json scores_json(const std::vector<ScoredFile>& scores);
JsonFormat scores_json_format();

// An interval as documents for others have it: a list of its two ends.
Kind<Interval> ends_kind();

}  // namespace kjudge
