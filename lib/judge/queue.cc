// SPDX-License-Identifier: Apache-2.0
#include "judge/queue.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "error.h"
#include "judge/backlog.h"
#include "judge/device.h"
#include "judge/device_lock.h"
#include "judge/interrupt.h"
#include "judge/profile_shape.h"
#include "judge/report.h"
#include "judge/running_steps.h"
#include "score/result_json.h"
#include "store/challenges.h"
#include "store/claim.h"
#include "store/copied_evaluation.h"
#include "store/judgements.h"
#include "store/kernels_hash.h"
#include "store/numbered_folders.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr auto kLook = std::chrono::seconds(2);  // how often, when nothing waits

// One judge with one device at a time: a second one would only take submissions and wait.
std::optional<DeviceLock> lock_queue(const fs::path& results, const DeviceIdentity& device,
                                     int number) {
  struct Busy {};
  try {
    return DeviceLock(
        cat("queue ", fs::canonical(results).string(), " ", device.driver, " ", number),
        [](const auto&) { throw Busy{}; });
  } catch (const Busy&) {
    return std::nullopt;
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class Queue {
 public:
  Queue(const Driver& driver, const Challenge& challenge, const QueueOptions& options,
        ResultsDirectory& results, const QueueReports& reports)
      : driver_(driver),
        challenge_(challenge),
        options_(options),
        results_(results),
        reports_(reports),
        index_(results, reports.left_out) {
    const DeviceIdentity device = identify(driver, options.replay.device);
    shapes_ = for_arch(challenge, device.arch).shapes;
    other_devices_ = other_devices(driver, challenge, options.replay.device);
    terms_ = {challenge.name,
              challenge.version,
              challenge.sha256,
              device.arch,
              device_kind(device.arch, device.name),
              kMethod};
  }

  std::vector<RefusedHandIn> fill() {
    begin();
    take_in_new();
    index_.save();
    return std::move(done_.refused);
  }

  JudgedQueue run() {
    begin();
    for (;;) {
      left_out_.clear();
      remove_left();
      take_in_new();
      while (judge_next()) {
      }
      prune();
      index_.save();
      say_left();
      if (!options_.watch) break;
      wait();
    }
    return std::move(done_);
  }

 private:
  void begin() {
    look();  // before any is added: a wrong challenge is refused with nothing written
    keep_challenge(results_, challenge_);
  }

  void say(const std::string& text) {
    if (said_.insert(text).second) reports_.line(text);
  }

  // What was had of it before is not valid any more.
  const std::vector<ScoredSubmission>& submissions() {
    index_.refresh();
    return index_.submissions();
  }

  Backlog look() {
    const auto& submissions = this->submissions();
    const auto invalidations = standing(
        read_records(results_, kInvalidationRecord, invalidation_table(), reports_.left_out));
    return backlog(submissions, terms_,
                   {[&](int number) { return options_.retry && !tried_.contains(number); }, shapes_,
                    invalid_ids(invalidations, index_), left_out_});
  }

  // Of a judge that was killed between verdict and removal.
  void remove_left() {
    for (const ScoredSubmission& one : submissions()) {
      if (one.identity.keep || one.evaluations.empty() ||
          one.evaluations.back().verdict == Verdict::judge_error) {
        continue;
      }
      unless_damaged(one.identity, [&] {
        const StoredSubmission stored = results_.submission(one.number);
        if (has_files_to_remove(stored)) remove_files(results_, stored);
      });
    }
  }

  void take_in_new() {
    if (options_.from.empty()) return;
    std::vector<SubmissionIdentity> present;
    for (const ScoredSubmission& one : submissions()) {
      present.push_back(one.identity);
      present.back().challenge = one.challenge;
    }
    done_.refused = take_in(
        results_, challenge_, {options_.from, options_.variant, index_.last_number()}, present,
        [&](const std::string& text) { say(text); }, reports_.left_out);
  }

  // What is damaged of one submission is no reason not to judge the others: it is left out until
  // the next round.
  void unless_damaged(const SubmissionIdentity& identity, const std::function<void()>& body) {
    const auto leave_out = [&](Fault fault, const std::string& what) {
      left_out_.insert(identity.number);
      reports_.left_out(Error(
          fault, cat(label_of(identity), "left out: ", what, "; kjudge fsck says what to do")));
    };
    try {
      body();
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed && error.fault() != Fault::host) throw;
      leave_out(error.fault(), error.what());
    } catch (const fs::filesystem_error& error) {
      leave_out(Fault::host, error.what());
    }
  }

  void wait() {
    const auto until = std::chrono::steady_clock::now() + kLook;
    while (std::chrono::steady_clock::now() < until) {
      check_interrupt();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  // The first whose claim is to be had; false: none, also if one looks again.
  bool judge_next() {
    check_interrupt();
    const std::size_t left_out = left_out_.size();
    const Backlog now = look();
    if (reports_.waiting) reports_.waiting(now.waiting);
    done_.elsewhere = 0;
    for (const Waiting& waiting : now.waiting) {
      if (left_out_.contains(waiting.submission->number)) continue;
      StoredSubmission submission;
      std::optional<Claim> claim;
      unless_damaged(waiting.submission->identity, [&] {
        submission = results_.submission(waiting.submission->number);
        if (waiting.answer == nullptr && !whole_.contains(waiting.submission->number)) {
          require_files(submission);
          whole_.insert(waiting.submission->number);
        }
        if (auto taken = Claim::take(submission, options_.lease)) {
          claim.emplace(std::move(*taken));
        } else {
          ++done_.elsewhere;
        }
      });
      if (!claim) continue;
      // Whoever had the claim before may have stored a verdict since; and now nobody can.
      submission = results_.submission(submission.identity.number);
      if (submission.evaluations.size() != waiting.submission->evaluations.size()) {
        index_.forget(submission.identity.number);
        return true;
      }
      if (waiting.answer == nullptr || !answer(submission, *claim, waiting)) {
        judge(submission, *claim);
      }
      return true;
    }
    return left_out_.size() > left_out;  // others may have waited for that
  }

  void judge(StoredSubmission& submission, Claim& claim) {
    const std::string label = label_of(submission.identity);
    EvaluateOptions evaluate_options;
    evaluate_options.submission = submission.folder / "files";
    evaluate_options.cache = options_.cache;
    evaluate_options.keep_bundle = claim.folder() / "bundle.kjb";
    evaluate_options.replay = options_.replay;
    evaluate_options.replay.other_devices = other_devices_;
    evaluate_options.replay.only = as_judged(submission.identity.variant, shapes_);
    evaluate_options.sandbox = options_.sandbox;
    tried_.insert(submission.identity.number);
    RunningSteps steps(wanted_shapes(submission),
                       [&](const RunningEvaluation& running) { tell(submission, claim, running); });
    tell(submission, claim, {.updated = utc_now()});
    Evaluation evaluation;
    ReplaySecret secret;
    for (int attempt = 1; attempt <= options_.attempts && claim.held(); ++attempt) {
      secret = draw_replay_secret();
      evaluate_options.replay.evaluation = secret.evaluation;
      evaluate_options.replay.secret = secret.secret;
      evaluate_options.replay.order_seed = secret.order_seed;
      evaluation = evaluate(driver_, challenge_, evaluate_options, [&](const Progress& now) {
        steps(now);
        if (reports_.progress) reports_.progress({label + now.step, now.shape, now.done});
      });
      if (evaluation.verdict != Verdict::judge_error) break;
    }
    evaluation.submission = submission.identity.name;
    const std::string kernels = kernels_of(claim);
    store(submission, claim,
          {submission.identity, std::move(evaluation), 0, first_with(kernels, submission.identity)},
          secret);
  }

  std::vector<Shape> wanted_shapes(const StoredSubmission& submission) const {
    const VariantRequest variant = as_judged(submission.identity.variant, shapes_);
    std::vector<Shape> wanted = shapes_;
    std::erase_if(wanted, [&](const Shape& one) { return !variant.takes(one); });
    return wanted;
  }

  // That it cannot be told is no reason not to judge.
  void tell(const StoredSubmission& submission, const Claim& claim,
            const RunningEvaluation& running) {
    if (!claim.held()) return;  // whoever took over tells
    try {
      claim.tell(running);
    } catch (const Error& error) {
      say(error.what());
    }
    if (reports_.running) reports_.running(submission, running);
  }

  // Of the recording in the claim's folder, where it is noted too; empty: there is none.
  static std::string kernels_of(const Claim& claim) {
    const fs::path bundle = claim.folder() / "bundle.kjb";
    if (!fs::exists(bundle)) return "";
    try {
      const std::string kernels = kernels_sha256(BundleReader(bundle).bundle());
      write_file_atomically(claim.folder() / "kernels.sha256", kernels + "\n");
      return kernels;
    } catch (const Error&) {
      if (claim.held()) throw;
      return "";
    }
  }

  // The first submission for this challenge, of other files, that launches the same; 0: none.
  int first_with(const std::string& kernels, const SubmissionIdentity& identity) {
    if (kernels.empty()) return 0;
    for (const ScoredSubmission& other : submissions()) {
      if (other.challenge != terms_.challenge || other.identity.sha256 == identity.sha256) continue;
      for (const ScoredEvaluation& evaluation : other.evaluations) {
        if (evaluation.kernels == kernels) return other.number;
      }
    }
    return 0;
  }

  // False: its recording is lost, and would be missed here.
  bool answer(StoredSubmission& submission, Claim& claim, const Waiting& waiting) {
    const fs::path first = results_.path() / "submissions" /
                           std::to_string(waiting.answered_by->number) / "evaluations" /
                           std::to_string(waiting.answer->number);
    Evaluation evaluation = result_from_json(read_file(first / "result.json"), first);
    if (submission.identity.keep && !has_its_recording(first, evaluation)) return false;
    link_evaluation(first, claim.folder());
    store(submission, claim,
          {submission.identity, std::move(evaluation), waiting.answered_by->number});
    return true;
  }

  void store(StoredSubmission& submission, Claim& claim, JudgedSubmission&& judged,
             const std::optional<ReplaySecret>& secret = {}) {
    const std::string label = label_of(judged.identity);
    if (!claim.commit(submission, judged.evaluation, secret)) {
      reports_.line(cat(label, "another judge took over after no sign of life for ",
                        options_.lease.count(),
                        " s; this verdict is not stored: ", name(judged.evaluation.verdict)));
      return;
    }
    stored_ = true;
    reports_.line(
        cat(label, judged.same_as != 0 ? cat("same files as ", judged.same_as, ": ") : "",
            summary(judged.evaluation),
            judged.same_kernels_as != 0 ? cat("; same kernels as ", judged.same_kernels_as) : ""));
    if (judged.evaluation.verdict != Verdict::judge_error && has_files_to_remove(submission)) {
      remove_files(results_, submission);
    }
    if (reports_.judged) reports_.judged(judged);
    if (judged.same_as == 0 && profile(submission, judged.evaluation) && reports_.judged) {
      reports_.judged(judged);
    }
    if (!options_.watch) done_.judged.push_back(std::move(judged));  // nobody asks a watch for them
  }

  void prune() {
    if (!std::exchange(stored_, false)) return;
    const PrunedCounts pruned =
        prune_bundles(results_, options_.keep_bundles, utc_now(), reports_.left_out);
    if (pruned.bundles > 0) {
      reports_.line(cat(pruned.bundles, " recordings pruned, ", pruned.bytes >> 10, " KiB"));
    }
  }

  // Every timed shape, beside the result. Whether there is a profile; that there is none is said.
  bool profile(const StoredSubmission& submission, const Evaluation& evaluation) {
    const fs::path folder =
        submission.folder / "evaluations" / std::to_string(submission.evaluations.back());
    if (options_.ncu.empty() || evaluation.verdict != Verdict::accepted ||
        !fs::exists(folder / "bundle.kjb")) {
      return false;
    }
    const std::string label = label_of(submission.identity);
    const int device = options_.replay.device;
    const auto progress = [&](const Progress& now) {
      check_interrupt();
      if (reports_.progress) reports_.progress({label + now.step, now.shape, now.done});
    };
    bool made = false;
    try {
      const UnfinishedFolder unfinished(submission.folder / "claims");  // which is swept
      const DeviceLock lock = lock_device(identify(driver_, device), device, progress);
      const Challenge challenge = for_arch(challenge_, terms_.arch);
      for (const Shape& shape : wanted_shapes(submission)) {
        if (!shape.timed) continue;
        const Profile profile = profile_shape({driver_, device, challenge, shape.name,
                                               folder / "bundle.kjb", submission.identity.name},
                                              {options_.ncu, options_.profile_set, {}, {}}, [&] {
                                                progress({"profiling", shape.name, 0});
                                              });
        const std::string name = cat("profile-", shape.name, ".json");
        write_file_atomically(unfinished.path() / name, profile_to_json(profile));
        fs::rename(unfinished.path() / name, folder / name);
        made = true;
      }
    } catch (const Error& error) {
      reports_.line(cat(label, "no profile: ", error.what()));
    } catch (const fs::filesystem_error& error) {
      reports_.line(cat(label, "no profile: ", error.what()));
    }
    return made;
  }

  // What nobody judges here, and why.
  void say_left() {
    const Backlog left = look();
    for (const auto& [submission, evaluation] : left.judge_errors) {
      say(cat(label_of(submission->identity), "judge error after ", options_.attempts,
              " attempts, which is not the contestant's fault: ", first_line(evaluation->message),
              "; mend the cause, then judge with --retry"));
    }
    done_.judge_errors = left.judge_errors.size();
    done_.for_others = left.for_others.size();
    std::map<std::string, std::string> numbers;  // by what they ask for
    for (const ScoredSubmission* one : left.for_others) {
      std::string& list = numbers[request_text(one->identity.variant)];
      list += cat(list.empty() ? "" : ", ", one->number);
    }
    for (const auto& [variant, list] : numbers) {
      say(cat("left for a judge elsewhere, since this is ", terms_.device_kind, ", what asks for ",
              variant, ": ", list));
    }
  }

  static std::string label_of(const SubmissionIdentity& identity) {
    return cat(identity.number, " ", identity.run, ": ");
  }

  const Driver& driver_;
  const Challenge& challenge_;
  const QueueOptions& options_;
  ResultsDirectory& results_;
  const QueueReports& reports_;
  ScoreIndex index_;
  Terms terms_;
  std::vector<Shape> shapes_;  // that the device runs
  std::vector<int> other_devices_;
  std::set<std::string> said_;
  std::set<int> tried_;
  std::set<int> left_out_;  // submissions, in this round
  std::set<int> whole_;     // whose files are what was handed in
  bool stored_ = false;     // since recordings were pruned
  JudgedQueue done_;
};

}  // namespace

std::optional<JudgedQueue> judge_queue(const Driver& driver, const Challenge& challenge,
                                       const QueueOptions& options, const QueueReports& reports) {
  auto results = ResultsDirectory::make(options.results);
  const auto lock =
      lock_queue(options.results, identify(driver, options.replay.device), options.replay.device);
  if (!lock) return std::nullopt;
  return Queue(driver, challenge, options, results, reports).run();
}

std::vector<RefusedHandIn> fill_queue(const Driver& driver, const Challenge& challenge,
                                      const QueueOptions& options, const QueueReports& reports) {
  auto results = ResultsDirectory::make(options.results);
  return Queue(driver, challenge, options, results, reports).fill();
}

}  // namespace kjudge
