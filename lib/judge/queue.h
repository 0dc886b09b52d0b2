// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "judge/backlog.h"
#include "judge/intake.h"
#include "judge/pipeline.h"
#include "store/pruning.h"
#include "store/results.h"
#include "store/running.h"

namespace kjudge {

struct QueueOptions {
  std::filesystem::path results;
  std::filesystem::path from;  // a folder of submissions to put into the queue first; may be empty
  VariantRequest variant;      // that these ask for; none: all of the challenge
  std::filesystem::path cache;
  ReplayOptions replay;
  const Sandbox* sandbox = nullptr;   // null: submissions run as the user
  int attempts = 3;                   // at a submission that ends in judge_error
  bool retry = false;                 // what ended in judge_error before, too
  bool watch = false;                 // wait for more until interrupted
  std::chrono::seconds lease{120};    // without a sign of life, until another judge takes over
  std::filesystem::path ncu;          // profiles what is accepted; empty: nothing is
  std::string profile_set = "basic";  // of ncu's
  KeepBundles keep_bundles;           // others are pruned once something was judged
};

struct JudgedSubmission {
  SubmissionIdentity identity;
  Evaluation evaluation;
  int same_as = 0;  // number of the submission whose files it has, and so its evaluation; 0: none
  int same_kernels_as = 0;  // of the first one with other files that launches the same; 0: none
};

struct JudgedQueue {
  std::vector<JudgedSubmission> judged;  // now, in order; of a watch none
  std::vector<RefusedHandIn> refused;    // now, at the door
  std::size_t judge_errors = 0;          // submissions whose last word is one, now or before
  std::size_t elsewhere = 0;             // submissions that other judges have still
  std::size_t for_others = 0;            // those that ask for another GPU, or what it runs
};

// What happens, for whoever shows it; each but the first two may be empty.
struct QueueReports {
  ReportLine line;
  ResultsDirectory::Report left_out;  // not judged or taken in: damaged, or it cannot be read
  ReportProgress progress;
  // What waits, whose turn is first first: before a submission is taken.
  std::function<void(const std::vector<Waiting>&)> waiting;
  // How far the one is that is judged.
  std::function<void(const StoredSubmission&, const RunningEvaluation&)> running;
  // After each verdict was stored, before the next submission is taken: where what is made of
  // results is made. Again when it was profiled.
  std::function<void(const JudgedSubmission&)> judged;
};

// Puts what is in `from` into the queue (judge/intake.h), then judges what waits (judge/backlog.h)
// until nothing does that no other judge has. Several may judge into the same results, each with a
// device of its own; nullopt when another process of this machine does so with this one. What is
// damaged of the results directory is reported, and the rest judged. Throws what evaluate()
// throws, after storing what was judged before.
std::optional<JudgedQueue> judge_queue(const Driver& driver, const Challenge& challenge,
                                       const QueueOptions& options, const QueueReports& reports);

// Only its beginning: puts what is in `from` into the queue.
std::vector<RefusedHandIn> fill_queue(const Driver& driver, const Challenge& challenge,
                                      const QueueOptions& options, const QueueReports& reports);

}  // namespace kjudge
