// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "judge/intake.h"
#include "judge/pipeline.h"
#include "store/rejudgement.h"
#include "store/results.h"
#include "store/score_index.h"

namespace kjudge {

struct JudgeAgainOptions {
  std::filesystem::path cache;
  int device = 0;
  // Asked for one when a submission is captured again; empty, or null: it is, as the user.
  std::function<const Sandbox*()> sandbox;
  bool from_files = false;          // capture again although there is a recording
  std::chrono::seconds lease{120};  // as in QueueOptions
};

// An evaluation of a submission made again on fresh hidden inputs: from its recording, so that none
// of its host code runs, or where there is none that replays here, from its files. `into` gets what
// lies in an evaluation's folder but log.txt and result.json. Throws what evaluate() throws.
// Fault::usage when the challenge is not the one that it was judged for.
struct JudgedAgain {
  Evaluation evaluation;
  ReplaySecret secret;
  bool from_recording = true;
};
JudgedAgain judge_again(const Driver& driver, const Challenge& challenge,
                        const StoredSubmission& submission, int evaluation,
                        const std::filesystem::path& into, const JudgeAgainOptions& options,
                        const ReportProgress& progress);

// The recording of an evaluation: the stored one, or where that was pruned one that is captured
// again, into `work`, and launches the same. Fault::host, saying what to do, where there is
// neither.
std::filesystem::path recording_of(const Driver& driver, const Challenge& challenge,
                                   const StoredSubmission& submission, int evaluation,
                                   const std::filesystem::path& work,
                                   const JudgeAgainOptions& options,
                                   const ReportProgress& progress);

// A new set, of the last evaluation that is selected of each submission; its number. Writes nothing
// else. Those whose files were not to be kept cannot be judged again, and are left out with a line.
// Fault::usage when there is none, or they are of several versions of challenges.
int make_rejudgement(const ResultsDirectory& results, const ScoreIndex& index,
                     const Selection& selection, const std::string& reason, const ReportLine& line);

struct RejudgeCounts {
  std::size_t done = 0;       // of the set, now or before
  std::size_t elsewhere = 0;  // with other judges, or of another kind of device
  std::size_t failed = 0;     // ended in a judge error, which is not stored
};
// Judges what the set has not yet. Any number may do so at the same time; killed, it goes on where
// it was.
RejudgeCounts run_rejudgement(const Driver& driver, const Challenge& challenge,
                              const ResultsDirectory& results, const RejudgementSet& set,
                              const JudgeAgainOptions& options, const ReportLine& line,
                              const ReportProgress& progress);

// Each new evaluation becomes the next one of its submission. Killed, it goes on where it was.
// Fault::usage when some are not judged yet or the set was dropped. Returns how many submissions
// other judges have; then the set stays open, to be applied again.
std::size_t apply_rejudgement(const ResultsDirectory& results, const RejudgementSet& set,
                              std::chrono::seconds lease);

}  // namespace kjudge
