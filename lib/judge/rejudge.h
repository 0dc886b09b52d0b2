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
// Fault::usage when the challenge is not the one that it was judged for; Fault::malformed when
// there is no recording that replays here, and the files are not what was handed in.
struct JudgedAgain {
  Evaluation evaluation;
  ReplaySecret secret;
  bool from_recording = true;
};
JudgedAgain judge_again(const Driver& driver, const Challenge& challenge,
                        const StoredSubmission& submission, int evaluation,
                        const std::filesystem::path& into, const JudgeAgainOptions& options,
                        const ReportProgress& progress);

// The recording of an evaluation: the stored one, or where that is not there, pruned or lost, one
// that is captured again, into `work`, and launches the same. Throws what is no matter of this
// submission: another time there may be one.
struct Recording {
  std::filesystem::path bundle;  // empty: there is none
  std::string why_not;           // then, with what to do
};
Recording recording_of(const Driver& driver, const Challenge& challenge,
                       const StoredSubmission& submission, int evaluation,
                       const std::filesystem::path& work, const JudgeAgainOptions& options,
                       const ReportProgress& progress);

// Why this evaluation can be made again on no machine: its files were not to be kept, or neither
// they nor its recording are there as they were. Empty: it can be.
std::string why_not_again(const StoredSubmission& submission, int evaluation);

// A new set, of the last evaluation that is selected of each submission; its number. Writes nothing
// else. Those that cannot be made again are left out, with a line each. Fault::usage when there is
// none, or they are of several versions of challenges.
int make_rejudgement(const ResultsDirectory& results, const ScoreIndex& index,
                     const Selection& selection, const std::string& reason, const ReportLine& line);

struct RejudgeCounts {
  std::size_t done = 0;       // of the set, now or before
  std::size_t elsewhere = 0;  // with other judges, or of another kind of device
  std::size_t failed = 0;     // ended in a judge error, which is not stored, or was not to be read
  std::size_t left_out = 0;   // cannot be made again; what is to be had of the set goes without
};
// Judges what the set has not yet. Any number may do so at the same time; killed, it goes on where
// it was.
RejudgeCounts run_rejudgement(const Driver& driver, const Challenge& challenge,
                              const ResultsDirectory& results, const RejudgementSet& set,
                              const JudgeAgainOptions& options, const ReportLine& line,
                              const ReportProgress& progress);

// Each new evaluation becomes the next one of its submission. Left out, with a line each, are those
// that cannot be made again, and those whose submission has one by now that began later. Killed, it
// goes on where it was. Fault::usage when some are not judged yet or the set was dropped. Returns
// how many submissions other judges have; then the set stays open, to be applied again.
std::size_t apply_rejudgement(const ResultsDirectory& results, const RejudgementSet& set,
                              std::chrono::seconds lease, const ReportLine& line);

}  // namespace kjudge
