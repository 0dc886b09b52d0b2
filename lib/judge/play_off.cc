// SPDX-License-Identifier: Apache-2.0
#include "judge/play_off.h"

#include <map>
#include <optional>
#include <set>

#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "score/result_json.h"
#include "store/challenges.h"
#include "store/claim.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

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
    // Each turn judges one again, so there are no more than runs.
    for (;;) {
      check_interrupt();
      const auto now = standings();
      if (!now) break;
      const std::optional<Entry> leader = unconfirmed_leader(*now);
      if (!leader) {
        play_off_groups(*now);
        break;
      }
      if (!confirm(*leader)) break;
    }
  }

  std::optional<VariantStandings> standings() {
    const auto report = [&](const Error& error) {
      if (said_.insert(described(error)).second) left_out_(error);
    };
    ScoreIndex index(results_, report);
    index.save();
    auto found = make_standings(read_source(results_, index, report), request_);
    if (found && found->terms.method != kMethod) {
      throw Error(Fault::usage, cat("these are results of method ", found->terms.method,
                                    ", this kjudge has method ", kMethod, ": judge them first"));
    }
    return found;
  }

  static std::optional<Entry> unconfirmed_leader(const VariantStandings& now) {
    const auto& [ranked, pending] = now.standings;
    if (!pending.empty()) return pending.front();
    // A play-off was on fresh seeds too.
    if (!ranked.empty() && !ranked.front().played_off && ranked.front().entry.judged < 2) {
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

  bool confirm(const Entry& entry) {
    const std::string label = label_of(entry);
    StoredSubmission submission = results_.submission(std::stoi(entry.submission));
    auto claim = Claim::take(submission, options_.lease);
    if (!claim) {
      line_(label + "another judge has it");
      ++done_.elsewhere;
      return false;
    }
    submission = results_.submission(submission.identity.number);
    const JudgedAgain again = judge_again(driver_, challenge_, submission, entry.evaluation,
                                          claim->folder(), options_, labelled(label));
    if (again.evaluation.verdict == Verdict::judge_error) {
      line_(cat(label, summary(again.evaluation), "; not stored"));
      ++done_.failed;
      return false;
    }
    if (!claim->commit(submission, again.evaluation, again.secret)) {
      line_(label + "another judge took over");
      ++done_.elsewhere;
      return false;
    }
    line_(cat(label, "judged again: ", summary(again.evaluation)));
    done_.judged_again.push_back(submission.identity.number);
    return true;
  }

  static PlayOffMember member(const Entry& entry) {
    return {std::stoi(entry.submission), entry.evaluation, entry.id, entry.run};
  }

  // Those that were not played off. Groups follow the order of the ranking.
  void play_off_groups(const VariantStandings& now) {
    std::map<int, std::vector<Entry>> groups;
    for (const RankedEntry& row : now.standings.ranked) {
      if (!row.played_off) groups[row.tie_group].push_back(row.entry);
    }
    for (const auto& [number, group] : groups) {
      if (group.size() > 1) play_off_group(group);
    }
  }

  void play_off_group(const std::vector<Entry>& group) {
    const TempDir work("kjudge-play-off");  // recordings that were captured again
    std::vector<fs::path> recordings;
    for (const Entry& entry : group) {
      try {
        Recording recording =
            recording_of(driver_, challenge_, results_.submission(std::stoi(entry.submission)),
                         entry.evaluation, work.path(), options_, labelled(label_of(entry)));
        if (recording.bundle.empty()) throw Error(Fault::host, recording.why_not);
        recordings.push_back(std::move(recording.bundle));
      } catch (const Error& error) {
        line_(cat(label_of(entry), error.what()));
        ++done_.failed;
        return;
      }
    }
    const VariantRequest only = judged_for(group);
    PlayOff record;
    record.best = member(group.front());
    std::vector<std::string> results;
    for (std::size_t i = 1; i < group.size(); ++i) {
      check_interrupt();
      const std::string label = cat(label_of(group[i]), "against ", group.front().run, ": ");
      Evaluation evaluation = replay(recordings.front(), recordings[i], only, label);
      evaluation.submission = group[i].run;
      line_(label + summary(evaluation));
      if (evaluation.verdict == Verdict::judge_error) {
        ++done_.failed;
        return;
      }
      record.others.push_back(member(group[i]));
      results.push_back(result_to_json(evaluation));
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
      const fs::path result = results_.submission(std::stoi(entry.submission)).folder /
                              "evaluations" / std::to_string(entry.evaluation) / "result.json";
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
