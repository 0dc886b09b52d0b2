// SPDX-License-Identifier: Apache-2.0
#include "judge/play_off.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "score/result_json.h"
#include "store/challenges.h"
#include "store/claim.h"
#include "store/copied_evaluation.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// What there is at one moment.
struct Moment {
  ScoreIndex index;
  Records<Invalidation> invalidations;
  VariantStandings standings;
};

// An entry that has the same files as a submission which was judged since: that counts for it too.
struct Newer {
  Entry entry;
  int submission = 0, evaluation = 0;  // that was judged since
  std::string id;
};

int number_of(const Entry& entry) { return std::stoi(entry.submission); }

bool same_content(const SubmissionIdentity& a, const SubmissionIdentity& b) {
  return a.keep && b.keep && a.sha256 == b.sha256 && a.variant.dtype == b.variant.dtype &&
         a.variant.shape == b.variant.shape;
}

std::vector<Entry> entries_of(const VariantStandings& standings) {
  std::vector<Entry> all;
  for (const RankedEntry& row : standings.standings.ranked) all.push_back(row.entry);
  for (const Entry& entry : standings.standings.pending) all.push_back(entry);
  return all;
}

// The newest valid evaluation of a copy that began after the entry's own.
std::optional<Newer> newer_than(const Moment& now, const Entry& entry,
                                const std::set<std::string_view>& invalid,
                                const std::vector<const ScoredSubmission*>& same_files) {
  const ScoredSubmission& own = *now.index.find(number_of(entry));
  const auto at = std::find_if(own.evaluations.begin(), own.evaluations.end(),
                               [&](const auto& one) { return one.number == entry.evaluation; });
  // As choose_best() has it, of two that began in the same second too.
  const auto begun = [](const ScoredEvaluation& one) { return std::tie(one.started, one.id); };
  const ScoredEvaluation* newest = &*at;
  std::optional<Newer> found;
  for (const ScoredSubmission* other : same_files) {
    if (!same_content(other->identity, own.identity)) continue;
    for (const ScoredEvaluation& one : other->evaluations) {
      if (one.terms != at->terms || one.verdict == Verdict::judge_error ||
          begun(one) <= begun(*newest) || invalid.contains(one.id)) {
        continue;
      }
      newest = &one;
      found = {entry, other->number, one.number, one.id};
    }
  }
  return found;
}

// Tied runs that were not played off, the first ones first. Of copies that have the same
// evaluation one stands for all.
std::vector<std::vector<Entry>> undecided_groups(const VariantStandings& now) {
  std::map<int, std::vector<Entry>> groups;
  std::set<std::string> ids;
  for (const RankedEntry& row : now.standings.ranked) {
    if (!row.played_off && ids.insert(row.entry.id).second) {
      groups[row.tie_group].push_back(row.entry);
    }
  }
  std::vector<std::vector<Entry>> undecided;
  for (auto& [number, group] : groups) {
    if (group.size() > 1) undecided.push_back(std::move(group));
  }
  return undecided;
}

std::vector<std::string> ids_of(const std::vector<Entry>& group) {
  std::vector<std::string> ids;
  for (const Entry& entry : group) ids.push_back(entry.id);
  return ids;
}

class PlayOffs {
 public:
  PlayOffs(const Driver& driver, const Challenge& challenge, const ResultsDirectory& results,
           const JudgeAgainOptions& options, const QueueReports& reports)
      : driver_(driver),
        challenge_(challenge),
        results_(results),
        options_(options),
        line_(reports.line),
        left_out_(reports.left_out),
        progress_(reports.progress) {
    const DeviceIdentity device = identify(driver, options.device);
    request_.challenge = challenge.name;
    request_.version = challenge.version;
    request_.gpu = device_word(device_kind(device.arch, device.name));
    arch_ = device.arch;
  }

  PlayOffDone run(const std::optional<VariantRequest>& request) {
    if (request) {
      settle(request->dtype, request->shape);
    } else {
      settle("", "");
      for (const RankedPart& part : parts()) settle(part.dtype, part.shape);
    }
    return std::move(done_);
  }

 private:
  enum class Outcome { done, later, never };

  std::vector<RankedPart> parts() const {
    const ScoreIndex index(results_, [](const auto&) {});
    std::set<std::string> asked;
    for (const ScoredSubmission& submission : index.submissions()) {
      for (const ScoredEvaluation& one : submission.evaluations) {
        const bool is_here =
            one.terms->challenge_sha256 == challenge_.sha256 && one.terms->arch == arch_;
        if (is_here && !one.variant.shape.empty()) asked.insert(one.variant.shape);
      }
    }
    const auto kept = kept_challenge(results_, challenge_.name, challenge_.version);
    return ranked_parts(kept ? &*kept : nullptr, arch_, asked);
  }

  void settle(const std::string& dtype, const std::string& shape) {
    request_.dtype = dtype;
    request_.shape = shape;
    // Each turn judges one again, or gives it what its copy has, so there is an end.
    for (;;) {
      check_interrupt();
      const auto now = look();
      if (!now) return;
      if (const auto newer = newer_of_copy(*now)) {
        if (give(*now, *newer) != Outcome::done) not_given_.insert(newer->id + newer->entry.id);
        continue;
      }
      const std::optional<Entry> leader = unconfirmed_leader(now->standings);
      if (!leader) {
        for (const auto& group : undecided_groups(now->standings)) play_off_group(group);
        return;
      }
      const Outcome outcome = confirm(*now, *leader);
      if (outcome == Outcome::later) return;
      if (outcome == Outcome::never) given_up_.insert(number_of(*leader));
    }
  }

  std::optional<Moment> look() {
    const auto report = [&](const Error& error) {
      if (said_.insert(described(error)).second) left_out_(error);
    };
    ScoreIndex index(results_, report);
    index.save();
    const StandingsSource source = read_source(results_, index, report);
    auto found = make_standings(source, request_);
    if (!found) return std::nullopt;
    if (found->terms.method != kMethod) {
      throw Error(Fault::usage, cat("these are results of method ", found->terms.method,
                                    ", this kjudge has method ", kMethod, ": judge them first"));
    }
    Records<Invalidation> invalidations = source.invalidations;
    return Moment{std::move(index), std::move(invalidations), std::move(*found)};
  }

  std::optional<Newer> newer_of_copy(const Moment& now) const {
    std::map<std::string_view, std::vector<const ScoredSubmission*>> by_files;
    const std::vector<Entry> entries = entries_of(now.standings);
    for (const Entry& entry : entries) {
      by_files.try_emplace(now.index.find(number_of(entry))->identity.sha256);
    }
    for (const ScoredSubmission& submission : now.index.submissions()) {
      const auto at = by_files.find(submission.identity.sha256);
      if (at != by_files.end()) at->second.push_back(&submission);
    }
    const auto invalid = invalid_ids(now.invalidations, now.index);
    for (const Entry& entry : entries) {
      const auto& same = by_files.at(now.index.find(number_of(entry))->identity.sha256);
      if (same.size() < 2) continue;
      auto newer = newer_than(now, entry, invalid, same);
      if (newer && !not_given_.contains(newer->id + entry.id)) return newer;
    }
    return std::nullopt;
  }

  std::optional<Entry> unconfirmed_leader(const VariantStandings& now) const {
    const auto& [ranked, pending] = now.standings;
    for (const Entry& entry : pending) {
      if (!given_up_.contains(number_of(entry))) return entry;
    }
    // A play-off was on fresh seeds too.
    if (!ranked.empty() && !ranked.front().played_off && ranked.front().entry.judged < 2 &&
        !given_up_.contains(number_of(ranked.front().entry))) {
      return ranked.front().entry;
    }
    return std::nullopt;
  }

  static std::string label_of(const Entry& entry) {
    return cat(entry.submission, " ", entry.run, ": ");
  }

  ReportProgress labelled(const std::string& label) const {
    return [this, label](const Progress& now) {
      if (progress_) progress_({label + now.step, now.shape, now.done});
    };
  }

  // nullopt: another judge has it.
  std::optional<Claim> claim_of(const Entry& entry) {
    auto claim = Claim::take(results_.submission(number_of(entry)), options_.lease);
    if (!claim) {
      line_(label_of(entry) + "another judge has it");
      ++done_.elsewhere;
    }
    return claim;
  }

  // Whoever had the claim before may have stored an evaluation since.
  static bool is_as_it_was(const Moment& now, const StoredSubmission& submission) {
    const ScoredSubmission& then = *now.index.find(submission.identity.number);
    return submission.evaluations.size() == then.evaluations.size() + then.unreadable.size();
  }

  Outcome give(const Moment& now, const Newer& newer) {
    auto claim = claim_of(newer.entry);
    if (!claim) return Outcome::later;
    StoredSubmission submission = results_.submission(number_of(newer.entry));
    if (!is_as_it_was(now, submission)) return Outcome::done;
    const fs::path from = results_.submission(newer.submission).folder / "evaluations" /
                          std::to_string(newer.evaluation);
    const Evaluation evaluation = result_from_json(read_file(from / "result.json"), from);
    if (!has_its_recording(from, evaluation)) return Outcome::never;
    link_evaluation(from, claim->folder());
    if (!claim->commit(submission, evaluation)) return Outcome::later;
    line_(cat(label_of(newer.entry), "was judged again as ", newer.submission,
              ", which has the same files: ", summary(evaluation)));
    return Outcome::done;
  }

  Outcome confirm(const Moment& now, const Entry& entry) {
    const std::string label = label_of(entry);
    auto claim = claim_of(entry);
    if (!claim) return Outcome::later;
    StoredSubmission submission = results_.submission(number_of(entry));
    if (!is_as_it_was(now, submission)) return Outcome::done;
    if (const std::string why = why_not_again(submission, entry.evaluation); !why.empty()) {
      line_(cat(label, "cannot be judged again: ", why));
      ++done_.failed;
      return Outcome::never;
    }
    JudgedAgain again;
    try {
      again = judge_again(driver_, challenge_, submission, entry.evaluation, claim->folder(),
                          options_, labelled(label));
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed) throw;
      line_(label + error.what());
      ++done_.failed;
      return Outcome::never;
    }
    if (again.evaluation.verdict == Verdict::judge_error) {
      line_(cat(label, summary(again.evaluation), "; not stored"));
      ++done_.failed;
      return Outcome::later;
    }
    if (!claim->commit(submission, again.evaluation, again.secret)) {
      line_(label + "another judge took over");
      ++done_.elsewhere;
      return Outcome::later;
    }
    line_(cat(label, "judged again: ", summary(again.evaluation)));
    done_.judged_again.push_back(submission.identity.number);
    return Outcome::done;
  }

  static PlayOffMember member(const Entry& entry) {
    return {number_of(entry), entry.evaluation, entry.id, entry.run};
  }

  bool is_undecided(const std::vector<Entry>& group) {
    const auto now = look();
    if (!now) return false;
    const auto groups = undecided_groups(now->standings);
    return std::any_of(groups.begin(), groups.end(),
                       [&](const auto& one) { return ids_of(one) == ids_of(group); });
  }

  void play_off_group(const std::vector<Entry>& group) {
    // As one that judges the first of it, so that nobody plays it off at the same time.
    const auto claim = claim_of(group.front());
    if (!claim || !is_undecided(group)) return;
    const TempDir work("kjudge-play-off");  // recordings that were captured again
    PlayOff record;
    std::vector<Entry> present;
    std::vector<fs::path> recordings;
    for (const Entry& entry : group) {
      try {
        Recording recording =
            recording_of(driver_, challenge_, results_.submission(number_of(entry)),
                         entry.evaluation, work.path(), options_, labelled(label_of(entry)));
        if (recording.bundle.empty()) {
          line_(label_of(entry) + recording.why_not);
          ++done_.failed;
          record.absent.push_back(member(entry));
          continue;
        }
        present.push_back(entry);
        recordings.push_back(std::move(recording.bundle));
      } catch (const Error& error) {
        line_(cat(label_of(entry), error.what()));
        ++done_.failed;
        return;
      }
    }
    if (present.empty()) return;
    record.best = member(present.front());
    const VariantRequest only = judged_for(present);
    std::vector<std::string> results;
    for (std::size_t i = 1; i < present.size(); ++i) {
      check_interrupt();
      const std::string label = cat(label_of(present[i]), "against ", present.front().run, ": ");
      Evaluation evaluation = replay(recordings.front(), recordings[i], only, label);
      evaluation.submission = present[i].run;
      line_(label + summary(evaluation));
      if (evaluation.verdict == Verdict::judge_error) {
        ++done_.failed;
        return;
      }
      record.others.push_back(member(present[i]));
      results.push_back(result_to_json(evaluation));
    }
    if (!claim->held()) {
      line_(label_of(group.front()) + "another judge took over");
      ++done_.elsewhere;
      return;
    }
    record.made = utc_now();
    done_.play_offs.push_back(
        add_record(results_, kPlayOffRecord, Json{play_off_table().write(record)},
                   [&](const fs::path& folder) {
                     fs::create_directory(folder / "results");
                     for (std::size_t i = 0; i < results.size(); ++i) {
                       write_file_atomically(folder / "results" / cat(i + 1, ".json"), results[i]);
                     }
                   }));
  }

  // What all of the group were judged for: all of the challenge where that is possible, since it
  // counts then for every variant.
  VariantRequest judged_for(const std::vector<Entry>& group) const {
    for (const Entry& entry : group) {
      const fs::path result = results_.submission(number_of(entry)).folder / "evaluations" /
                              std::to_string(entry.evaluation) / "result.json";
      if (!result_from_json(read_file(result), result).variant.all_shapes()) return request_;
    }
    return {};
  }

  Evaluation replay(const fs::path& best, const fs::path& other, const VariantRequest& only,
                    const std::string& label) {
    const ReplaySecret secret = draw_replay_secret();
    ReplayOptions replay;
    replay.device = options_.device;
    replay.evaluation = secret.evaluation;
    replay.secret = secret.secret;
    replay.order_seed = secret.order_seed;
    replay.only = only;
    ReplayBundles bundles;
    bundles.baseline = best;
    bundles.submission = other;
    return replay_bundles(driver_, challenge_, bundles, options_.cache, replay, labelled(label));
  }

  const Driver& driver_;
  const Challenge& challenge_;
  const ResultsDirectory& results_;
  VariantRequest request_;  // that is being settled
  std::string arch_;
  const JudgeAgainOptions& options_;
  const ReportLine& line_;
  const ResultsDirectory::Report& left_out_;
  const ReportProgress& progress_;
  std::set<std::string> said_;
  std::set<std::string> not_given_;  // ids of an evaluation and of the one that it was to follow
  std::set<int> given_up_;           // submissions that cannot be judged again
  PlayOffDone done_;
};

}  // namespace

const FieldTable<PlayOffDone>& played_off_table() {
  using D = PlayOffDone;
  const auto numbers = list_kind(integer_kind(1, 1'000'000'000));
  static const FieldTable<D> table(
      {format_field<D>("kjudge-played-off/1"),
       required("judged_again", &D::judged_again, numbers,
                "numbers of submissions that led with one judging only, in order"),
       required("play_offs", &D::play_offs, numbers, "numbers of the records that were made")});
  return table;
}

PlayOffDone play_off(const Driver& driver, const Challenge& challenge,
                     const ResultsDirectory& results, const std::optional<VariantRequest>& request,
                     const JudgeAgainOptions& options, const QueueReports& reports) {
  const bool other = request && (request->challenge != challenge.name ||
                                 (request->version != 0 && request->version != challenge.version));
  if (other) {
    throw Error(Fault::usage, cat(request_text(*request), " is not of challenge ", challenge.name,
                                  " version ", challenge.version));
  }
  return PlayOffs(driver, challenge, results, options, reports).run(request);
}

}  // namespace kjudge
