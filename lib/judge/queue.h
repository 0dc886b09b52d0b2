// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "judge/pipeline.h"
#include "score/score.h"
#include "store/results.h"

namespace kjudge {

struct QueueOptions {
  std::filesystem::path results;
  std::filesystem::path from;  // a folder of submissions to put into the queue first; may be empty
  std::filesystem::path cache;
  ReplayOptions replay;
  const Sandbox* sandbox = nullptr;  // null: submissions run as the user
  int attempts = 3;                  // at a submission that ends in judge_error
};

struct JudgedSubmission {
  SubmissionIdentity identity;
  Evaluation evaluation;
};

// What happens, one line each, for people.
using ReportLine = std::function<void(const std::string&)>;

// Puts every submission of `from` (each .py or .cu file, each archive and each folder with
// submission.py or submission.cu, in the order of their names; run = name without .py, .cu or an
// archive's suffix) into the queue, then
// judges what has no evaluation but a judge_error yet, in the order of the numbers. What is refused
// at the door has a line and no number. Returns what was judged now. Throws what evaluate() throws,
// after storing what was judged before; nullopt when another process judges into `results`.
std::optional<std::vector<JudgedSubmission>> judge_queue(const Driver& driver,
                                                         const Challenge& challenge,
                                                         const QueueOptions& options,
                                                         const ReportLine& line,
                                                         const ReportProgress& progress);

// For rank: of each run its best evaluation. Skips and reports what cannot be read, and what is of
// another challenge, arch or method than the newest evaluation: those do not compare.
std::vector<Entry> collect_entries(const ResultsDirectory& results, const ReportLine& line);

}  // namespace kjudge
