// SPDX-License-Identifier: Apache-2.0
#include "judge/rejudge.h"

#include <algorithm>
#include <set>

#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/device_lock.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "score/result_json.h"
#include "store/blobs.h"
#include "store/claim.h"
#include "store/copied_evaluation.h"
#include "store/kernels_hash.h"
#include "store/numbered_folders.h"
#include "store/pruning.h"
#include "store/submission_files.h"
#include "store/terms.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const StoredSubmission& submission, int evaluation) {
  return submission.folder / "evaluations" / std::to_string(evaluation);
}

Evaluation read_result(const fs::path& folder) {
  return result_from_json(read_file(folder / "result.json"), folder / "result.json");
}

void require_same_challenge(const Challenge& challenge, const Evaluation& old, int submission) {
  if (old.challenge == challenge.name && old.challenge_version == challenge.version &&
      old.challenge_sha256 == challenge.sha256) {
    return;
  }
  throw Error(Fault::usage,
              cat("submission ", submission, " was judged for ", old.challenge, " version ",
                  old.challenge_version, " in another state than ", challenge.folder.string(),
                  " has; for a new version kjudge judge does it all anew"));
}

const Sandbox* sandbox_of(const JudgeAgainOptions& options) {
  return options.sandbox ? options.sandbox() : nullptr;
}

void note_kernels(const fs::path& folder) {
  const fs::path bundle = folder / "bundle.kjb";
  if (!fs::exists(bundle) || fs::exists(folder / "kernels.sha256")) return;
  write_file_atomically(folder / "kernels.sha256",
                        kernels_sha256(BundleReader(bundle).bundle()) + "\n");
}

// What is wrong with the files as they lie there; empty: they are what was handed in.
std::string fault_of_files(const StoredSubmission& submission) {
  const fs::path files = submission.folder / "files";
  if (!fs::exists(files)) return "its files are gone";
  try {
    if (read_submission_files(files).sha256 == submission.identity.sha256) return "";
  } catch (const Error& error) {
    if (error.fault() != Fault::submission) throw;
  }
  return "its files are not what was handed in";
}

std::string label_of(const Rejudged& one) { return cat(one.submission, " ", one.run, ": "); }

// From the recording; nullopt where it does not replay here.
std::optional<Evaluation> from_recording(const Driver& driver, const Challenge& challenge,
                                         const fs::path& folder, const fs::path& cache,
                                         const ReplayOptions& replay,
                                         const ReportProgress& progress) {
  ReplayBundles bundles;
  bundles.submission = folder / "bundle.kjb";
  if (!fs::exists(bundles.submission)) return std::nullopt;
  try {
    return replay_bundles(driver, challenge, bundles, cache, replay, progress);
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;  // else recorded on another driver or GPU
    return std::nullopt;
  }
}

// One of the set that has the same evaluation, since it has the same files, and was judged again;
// null: none.
const Rejudged* judged_copy(const RejudgementSet& set, const Rejudged& one) {
  for (const Rejudged& other : set.record().evaluations) {
    if (other.id == one.id && fs::exists(set.evaluation(other.submission))) return &other;
  }
  return nullptr;
}

void copy_rejudged(const fs::path& evaluation, const fs::path& to) {
  link_evaluation(evaluation, to);
  for (const char* name : {"log.txt", "result.json"}) link_or_copy(evaluation / name, to / name);
}

// What a submission has beside an evaluation that may become its next one.
struct Beside {
  bool is_there = false;  // it is its own already
  int later = 0;          // the last on the same terms that began after it; 0: none
};
// What is no newer than `made_again` is older than it, whatever the clocks said.
Beside beside(const StoredSubmission& submission, const Evaluation& evaluation, int made_again) {
  Beside found;
  for (const int number : submission.evaluations) {
    try {
      const Evaluation other = read_result(folder_of(submission, number));
      if (other.id == evaluation.id) found.is_there = true;
      if (number > made_again && other.started > evaluation.started &&
          terms_of(other) == terms_of(evaluation)) {
        found.later = number;
      }
    } catch (const Error&) {  // fsck tells
    }
  }
  return found;
}

}  // namespace

JudgedAgain judge_again(const Driver& driver, const Challenge& challenge,
                        const StoredSubmission& submission, int evaluation, const fs::path& into,
                        const JudgeAgainOptions& options, const ReportProgress& progress) {
  const fs::path folder = folder_of(submission, evaluation);
  const Evaluation old = read_result(folder);
  require_same_challenge(challenge, old, submission.identity.number);
  JudgedAgain again;
  again.secret = draw_replay_secret();
  ReplayOptions replay;
  replay.device = options.device;
  replay.other_devices = other_devices(driver, challenge, options.device);
  replay.evaluation = again.secret.evaluation;
  replay.secret = again.secret.secret;
  replay.order_seed = again.secret.order_seed;
  replay.only = old.variant;
  std::optional<Evaluation> made;
  if (!options.from_files) {
    made = from_recording(driver, challenge, folder, options.cache, replay, progress);
  }
  if (made) {
    for (const char* name : {"bundle.kjb", "kernels.sha256"}) {
      link_or_copy(folder / name, into / name);
    }
    for (const fs::path& profile : profile_files(folder)) {
      link_or_copy(profile, into / profile.filename());
    }
    // What only the capture knows.
    made->sandbox = old.sandbox;
    made->log = old.log;
  } else {
    again.from_recording = false;
    if (const std::string fault = fault_of_files(submission); !fault.empty()) {
      throw Error(
          Fault::malformed,
          cat(fault, options.from_files ? "" : ", and it has no recording that replays here"));
    }
    EvaluateOptions evaluate_options;
    evaluate_options.submission = submission.folder / "files";
    evaluate_options.cache = options.cache;
    evaluate_options.keep_bundle = into / "bundle.kjb";
    evaluate_options.replay = replay;
    evaluate_options.sandbox = sandbox_of(options);
    made = evaluate(driver, challenge, evaluate_options, progress);
  }
  note_kernels(into);
  again.evaluation = std::move(*made);
  again.evaluation.submission = submission.identity.name;
  again.evaluation.submission_sha256 = submission.identity.sha256;
  return again;
}

Recording recording_of(const Driver& driver, const Challenge& challenge,
                       const StoredSubmission& submission, int evaluation, const fs::path& work,
                       const JudgeAgainOptions& options, const ReportProgress& progress) {
  const fs::path folder = folder_of(submission, evaluation);
  const fs::path stored = folder / "bundle.kjb";
  if (fs::exists(stored)) return {stored, ""};
  const std::string advice = "; kjudge rejudge judges it again with a new one";
  const fs::path kernels = folder / "kernels.sha256";
  // Without the hash nobody knows what was judged.
  if (!fs::exists(kernels)) return {{}, "has no recording" + advice};
  if (const std::string fault = fault_of_files(submission); !fault.empty()) {
    return {{}, "has no recording, and " + fault};
  }
  CaptureOptions capture_options;
  capture_options.submission = submission.folder / "files";
  capture_options.bundle = work / cat(submission.identity.number, ".kjb");
  capture_options.device = options.device;
  capture_options.only = read_result(folder).variant;
  capture_options.sandbox = sandbox_of(options);
  capture_options.progress = progress;
  const DeviceIdentity device = identify(driver, options.device);
  const DeviceLock lock = lock_device(device, options.device, progress);
  const CaptureOutcome outcome = capture(driver, for_arch(challenge, device.arch), capture_options);
  if (outcome.verdict == Verdict::judge_error) {
    throw Error(Fault::host,
                cat("has no recording, and was not captured again: ", outcome.message));
  }
  if (outcome.verdict != Verdict::accepted) {
    return {{},
            cat("has no recording, and captured again it is ", name(outcome.verdict), ": ",
                outcome.message, advice)};
  }
  if (kernels_sha256(BundleReader(capture_options.bundle).bundle()) + "\n" != read_file(kernels)) {
    return {{},
            cat("has no recording, and captured again it launches other kernels than were judged",
                advice)};
  }
  return {capture_options.bundle, ""};
}

std::string why_not_again(const StoredSubmission& submission, int evaluation) {
  if (!submission.identity.keep) return "its files were not to be kept";
  const std::string fault = fault_of_files(submission);
  if (fault.empty()) return "";
  const fs::path bundle = folder_of(submission, evaluation) / "bundle.kjb";
  if (!fs::exists(bundle)) return fault + ", and it has no recording";
  try {
    BundleReader{bundle};
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
    return fault + ", and its recording is damaged";
  }
  return "";
}

int make_rejudgement(const ResultsDirectory& results, const ScoreIndex& index,
                     const Selection& selection, const std::string& reason,
                     const ReportLine& line) {
  Rejudgement set;
  set.selection = selection;
  set.reason = reason;
  set.made = utc_now();
  std::size_t left_out = 0;
  for (const ScoredSubmission& submission : index.submissions()) {
    const ScoredEvaluation* last = nullptr;
    for (const ScoredEvaluation& one : submission.evaluations) {
      if (selects(selection, selectable(index, submission, one))) last = &one;
    }
    if (last == nullptr) continue;
    const Rejudged one{submission.number, last->number, last->id, submission.identity.run};
    if (const std::string why = why_not_again(results.submission(one.submission), one.evaluation);
        !why.empty()) {
      line(cat(label_of(one), why, "; left out"));
      ++left_out;
      continue;
    }
    const Terms& terms = index.terms(*last);
    if (set.evaluations.empty()) {
      set.challenge = terms.challenge;
      set.challenge_version = terms.challenge_version;
    }
    if (terms.challenge != set.challenge || terms.challenge_version != set.challenge_version) {
      throw Error(
          Fault::usage,
          cat("these are evaluations of ", set.challenge, " version ", set.challenge_version,
              " and of ", terms.challenge, " version ", terms.challenge_version,
              ": make a set of each, with --challenge and --challenge-version"));
    }
    set.evaluations.push_back(one);
  }
  if (set.evaluations.empty()) {
    throw Error(Fault::usage, left_out == 0 ? "no evaluation is like that"
                                            : "no evaluation that is like that can be made again");
  }
  return add_record(results, kRejudgementRecord,
                    record_json(rejudgement_table(), set, kRejudgementRecord));
}

RejudgeCounts run_rejudgement(const Driver& driver, const Challenge& challenge,
                              const ResultsDirectory& results, const RejudgementSet& set,
                              const JudgeAgainOptions& options, const ReportLine& line,
                              const ReportProgress& progress) {
  if (set.state() != RejudgementState::open) {
    throw Error(Fault::usage, cat("rejudgement ", set.number(), " was ", name(set.state())));
  }
  const DeviceIdentity device = identify(driver, options.device);
  const std::string kind = device_kind(device.arch, device.name);
  const fs::path parent = set.folder() / "evaluations";
  fs::create_directories(parent);
  sync_directory(set.folder());
  sweep_unfinished(parent);
  RejudgeCounts counts;
  std::set<std::string> others;  // ids of evaluations that other judges make again
  for (const Rejudged& one : set.record().evaluations) {
    check_interrupt();
    if (fs::exists(set.evaluation(one.submission))) {
      ++counts.done;
      continue;
    }
    const std::string label = label_of(one);
    StoredSubmission submission;
    Evaluation old;
    try {
      submission = results.submission(one.submission);
      old = read_result(folder_of(submission, one.evaluation));
    } catch (const Error& error) {
      if (error.fault() == Fault::bug) throw;
      line(label + error.what());  // the others can be judged all the same
      ++counts.failed;
      continue;
    }
    if (const std::string why = why_not_again(submission, one.evaluation); !why.empty()) {
      line(cat(label, why, "; left out"));
      ++counts.left_out;
      continue;
    }
    require_same_challenge(challenge, old, one.submission);
    if (!old.arch.empty() && device_kind(old.arch, old.device) != kind) {
      line(cat(label, "was judged on ", device_kind(old.arch, old.device), ", this is ", kind,
               ": left for a judge there"));
      ++counts.elsewhere;
      continue;
    }
    // As one that judges it, so that nobody does the same at the same time.
    const auto claim = Claim::take(submission, options.lease);
    if (!claim || fs::exists(set.evaluation(one.submission))) {
      ++(claim ? counts.done : counts.elsewhere);
      if (!claim) others.insert(one.id);
      continue;
    }
    const UnfinishedFolder folder(parent);
    if (const Rejudged* copy = judged_copy(set, one)) {
      copy_rejudged(set.evaluation(copy->submission), folder.path());
      rename_new(folder.path(), set.evaluation(one.submission));
      line(cat(label, "was judged again as ", copy->submission, ", which has the same files"));
      ++counts.done;
      continue;
    }
    if (others.contains(one.id)) {
      ++counts.elsewhere;
      continue;
    }
    JudgedAgain again;
    try {
      again = judge_again(driver, challenge, submission, one.evaluation, folder.path(), options,
                          [&](const Progress& now) {
                            if (progress) progress({label + now.step, now.shape, now.done});
                          });
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed) throw;
      line(label + error.what());
      ++counts.failed;
      continue;
    }
    if (again.evaluation.verdict == Verdict::judge_error) {
      line(cat(label, summary(again.evaluation), "; not stored"));
      ++counts.failed;
      continue;
    }
    const Evaluation stored = without_code(again.evaluation, submission.identity);
    write_file_atomically(folder.path() / "log.txt", stored.log);
    write_file_atomically(folder.path() / "result.json", result_to_json(stored));
    write_replay_secret(folder.path(), again.secret);
    rename_new(folder.path(), set.evaluation(one.submission));
    line(cat(label, summary(again.evaluation),
             again.from_recording ? "" : "; captured again from its files"));
    ++counts.done;
  }
  return counts;
}

std::size_t apply_rejudgement(const ResultsDirectory& results, const RejudgementSet& set,
                              std::chrono::seconds lease, const ReportLine& line) {
  std::size_t missing = 0, elsewhere = 0;
  const auto& all = set.record().evaluations;
  if (set.state() == RejudgementState::dropped) {
    throw Error(Fault::usage, cat("rejudgement ", set.number(), " was dropped"));
  }
  for (const Rejudged& one : all) {
    if (set.result(one.submission)) continue;
    const std::string why = why_not_again(results.submission(one.submission), one.evaluation);
    if (why.empty()) {
      ++missing;
    } else {
      line(cat(label_of(one), why, "; its old result counts on"));
    }
  }
  if (missing > 0) {
    throw Error(Fault::usage, cat(missing, " of the ", all.size(), " evaluations of rejudgement ",
                                  set.number(), " are not judged again yet: run it first"));
  }
  for (const Rejudged& one : all) {
    check_interrupt();
    const auto made = set.result(one.submission);
    if (!made) continue;
    const Evaluation& evaluation = *made;
    auto claim = Claim::take(results.submission(one.submission), lease);
    if (!claim) {
      ++elsewhere;
      continue;
    }
    StoredSubmission submission = results.submission(one.submission);
    const auto [is_there, later] = beside(submission, evaluation, one.evaluation);
    if (is_there) continue;
    if (later != 0) {
      line(cat(label_of(one), "its evaluation ", later, " was judged later, and counts on"));
      continue;
    }
    link_evaluation(set.evaluation(one.submission), claim->folder());
    if (!claim->commit(submission, evaluation)) ++elsewhere;
  }
  if (elsewhere == 0) set.end(RejudgementState::applied);
  return elsewhere;
}

}  // namespace kjudge
