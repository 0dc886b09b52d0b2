// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <set>

#include "error.h"
#include "file.h"
#include "judge/backlog.h"
#include "score/result_json.h"
#include "store/challenges.h"
#include "store/numbered_folders.h"
#include "store/standings.h"
#include "web/site.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

fs::path submission_folder(const fs::path& results, int number) {
  return results / "submissions" / std::to_string(number);
}

fs::path evaluation_folder(const fs::path& submission, int number) {
  return submission / "evaluations" / std::to_string(number);
}

// By every challenge that it is for.
bool is_published(const std::vector<Challenge>& challenges, const SubmissionIdentity& identity,
                  const SubmissionNotes& notes) {
  const auto is_for = [&](const Challenge& one) {
    return identity.challenge.empty() || identity.challenge == kAllChallenges ||
           identity.challenge == one.name;
  };
  bool any = false;
  for (const Challenge& one : challenges) {
    if (!is_for(one)) continue;
    if (!may_publish(one, identity, notes)) return false;
    any = true;
  }
  return any;
}

bool is_of(const Challenge& challenge, const Terms& terms) {
  return challenge.name == terms.challenge && challenge.version == terms.challenge_version &&
         challenge.sha256 == terms.challenge_sha256;
}

EvaluationSummary summarize(const ScoreIndex& index, const ScoredEvaluation& scored) {
  EvaluationSummary summary;
  summary.number = scored.number;
  summary.terms = scored.terms;
  summary.id = scored.id;
  summary.started = scored.started;
  summary.variant = scored.variant;
  summary.verdict = scored.verdict;
  summary.score = index.score_of(scored);
  summary.timed = scored.timed;
  summary.kernels = scored.kernels;
  return summary;
}

}  // namespace

Evaluation read_evaluation(const fs::path& submission, int number) {
  const fs::path path = evaluation_folder(submission, number) / "result.json";
  return result_from_json(read_file(path), path);
}

std::vector<Profile> read_profiles(const fs::path& submission, int number,
                                   const ResultsDirectory::Report& report) {
  std::map<std::string, Profile> by_shape;
  for (const fs::path& path : profile_files(evaluation_folder(submission, number))) {
    try {
      Profile profile = profile_from_json(read_file(path), path);
      by_shape[profile.shape] = std::move(profile);
    } catch (const Error& problem) {
      report(problem);
    }
  }
  std::vector<Profile> profiles;
  for (auto& [shape, profile] : by_shape) profiles.push_back(std::move(profile));
  return profiles;
}

const Challenge* Site::challenge(const std::string& name, int version) const {
  for (const auto* list : {&challenges, &kept}) {
    for (const Challenge& one : *list) {
      if (one.name == name && one.version == version) return &one;
    }
  }
  return nullptr;
}

const Challenge* Site::challenge_of(const Terms& terms) const {
  for (const auto* list : {&challenges, &kept}) {
    for (const Challenge& one : *list) {
      if (is_of(one, terms)) return &one;
    }
  }
  return nullptr;
}

fs::path Site::folder_of(const SubmissionSummary& submission) const {
  return submission_folder(results, submission.stored.identity.number);
}

std::set<EvaluationKey> same_kernels_as(const Site& site, int submission) {
  std::map<std::string_view, std::vector<EvaluationKey>> with;
  for (const SubmissionSummary& one : site.submissions) {
    if (one.stored.identity.number != submission) continue;
    for (const EvaluationSummary& evaluation : one.evaluations) {
      if (!evaluation.kernels.empty()) with[evaluation.kernels];
    }
  }
  std::set<EvaluationKey> found;
  if (with.empty()) return found;
  for (const SubmissionSummary& one : site.submissions) {
    for (const EvaluationSummary& evaluation : one.evaluations) {
      const auto at = with.find(evaluation.kernels);
      if (at != with.end()) at->second.push_back({one.stored.identity.number, evaluation.number});
    }
  }
  for (const auto& [kernels, keys] : with) {
    std::map<int, std::size_t> of_submission;
    for (const EvaluationKey& key : keys) ++of_submission[key.submission];
    for (const EvaluationKey& key : keys) {
      // One that named so many without this one says "and others" as it is.
      const std::size_t named = keys.size() - of_submission.at(key.submission);
      if (key.submission != submission && named <= kMostSameKernels + 1) found.insert(key);
    }
  }
  return found;
}

SiteReader::SiteReader(const ResultsDirectory& results, std::vector<Challenge> challenges,
                       ResultsDirectory::Report report)
    : results_(results), challenges_(std::move(challenges)), report_(std::move(report)) {}

const ScoreIndex& SiteReader::index() {
  if (!index_) {
    index_.emplace(results_, report_);
    // What only some evaluations changed, a judge saves.
    if (index_->from_file() != ScoreIndex::FromFile::used) index_->save();
  }
  return *index_;
}

const std::vector<std::string>& SiteReader::profiled(int submission, int evaluation) {
  // One may come later, which changes the folder.
  const std::string name =
      cat(results_.path().native(), "/submissions/", submission, "/evaluations/", evaluation);
  const FileStamp folder = stamp_at(AT_FDCWD, name.c_str()).value_or(FileStamp{});
  Profiled& known = profiled_[{submission, evaluation}];
  if (known.folder != folder) {
    known = {folder, {}};
    const auto report = [&](const Error& error) {
      // What is damaged stays so; what the machine cannot read now it may in a moment.
      if (error.fault() == Fault::host) known.folder = {};
      report_(error);
    };
    try {
      const fs::path files = submission_folder(results_.path(), submission);
      for (const Profile& profile : read_profiles(files, evaluation, report)) {
        known.shapes.push_back(profile.shape);
        for (const KernelProfile& kernel : profile.kernels) {
          for (const Metric& metric : kernel.metrics) metrics_.insert(metric.name);
        }
      }
    } catch (const Error& error) {
      report(error);
    }
  }
  return known.shapes;
}

std::vector<std::vector<int>> SiteReader::record_numbers() const {
  std::vector<std::vector<int>> all;
  for (const char* kind : {kBarRecord, kInvalidationRecord, kPlayOffRecord}) {
    all.push_back(numbered(record_folder(results_.path(), kind)));
  }
  return all;
}

bool SiteReader::look() {
  if (!index_) return true;
  news_ = index_->refresh() || news_;
  return news_ || record_numbers() != records_;
}

SubmissionSummary SiteReader::summary_of(const ScoredSubmission& scored,
                                         const Records<Invalidation>& invalidations) {
  SubmissionSummary submission;
  StoredSubmission& stored = submission.stored;
  stored.identity = scored.identity;
  stored.identity.challenge = scored.challenge;
  stored.evaluations = scored.unreadable;
  submission.notes = scored.notes;
  submission.published = is_published(challenges_, stored.identity, submission.notes);
  submission.evaluations.reserve(scored.evaluations.size());
  for (const ScoredEvaluation& evaluation : scored.evaluations) {
    stored.evaluations.push_back(evaluation.number);
    submission.evaluations.push_back(summarize(*index_, evaluation));
    if (invalidations.empty()) continue;
    submission.evaluations.back().invalid =
        invalid_reasons(invalidations, selectable(*index_, scored, evaluation));
  }
  std::sort(stored.evaluations.begin(), stored.evaluations.end());
  // What kjudge failed at waits for the organizer, who may never have it judged again.
  if (stored.evaluations.empty()) submission.running.emplace();
  if (scored.may_be_judged) {
    const auto running = read_running(submission_folder(results_.path(), scored.number));
    if (running) submission.running = running;
  }
  return submission;
}

Site SiteReader::read() { return read(std::nullopt); }

Site SiteReader::read_about(int submission) { return read(std::optional(submission)); }

Site SiteReader::read(std::optional<int> profiles_of) {
  if (index_) index_->refresh();
  index();
  news_ = false;
  records_ = record_numbers();
  Site site;
  site.results = results_.path();
  site.challenges = challenges_;
  site.kept = kept();
  site.bars = standing(read_records(results_, kBarRecord, bar_table(), report_));
  const auto invalidations =
      standing(read_records(results_, kInvalidationRecord, invalidation_table(), report_));
  site.play_offs = read_play_offs(results_, invalidations, report_);
  // Of a state that is not known, the open one of its name speaks.
  const auto challenge_of = [&site](const Terms& terms) -> const Challenge* {
    if (const Challenge* known = site.challenge_of(terms)) return known;
    const auto open = std::find_if(site.challenges.begin(), site.challenges.end(),
                                   [&](const auto& one) { return one.name == terms.challenge; });
    return open != site.challenges.end() ? &*open : nullptr;
  };
  site.submissions.reserve(index_->submissions().size());
  for (const ScoredSubmission& scored : index_->submissions()) {
    SubmissionSummary& one = site.submissions.emplace_back(summary_of(scored, invalidations));
    // As all that it was judged for want it, too, though another version is open now.
    one.published = one.published && may_publish(scored, challenge_of);
  }
  const auto others = profiles_of ? same_kernels_as(site, *profiles_of) : std::set<EvaluationKey>();
  for (SubmissionSummary& submission : site.submissions) {
    const int number = submission.stored.identity.number;
    for (EvaluationSummary& one : submission.evaluations) {
      if (profiles_of && *profiles_of != number && !others.contains({number, one.number})) continue;
      one.profiled = profiled(number, one.number);
    }
  }
  site.metrics = metrics_;
  find_places(site);
  return site;
}

// A kept one never changes, and was kept before anything was judged for it.
std::vector<Challenge> SiteReader::kept() {
  std::set<std::pair<std::string, int>> wanted;
  for (const auto& terms : index_->all_terms()) {
    const bool is_open = std::any_of(challenges_.begin(), challenges_.end(),
                                     [&](const Challenge& one) { return is_of(one, *terms); });
    if (!is_open) wanted.emplace(terms->challenge, terms->challenge_version);
  }
  std::vector<Challenge> found;
  for (const auto& key : wanted) {
    const auto [at, is_new] = kept_.try_emplace(key);
    if (is_new) at->second = kept_challenge(results_, key.first, key.second);
    if (at->second) found.push_back(*at->second);
  }
  return found;
}

void SiteReader::find_places(Site& site) const {
  std::set<std::string> challenges;
  for (const Challenge& one : challenges_) challenges.insert(one.name);
  const auto find = [&](int number) {
    return std::lower_bound(
        site.submissions.begin(), site.submissions.end(), number,
        [](const auto& a, int wanted) { return a.stored.identity.number < wanted; });
  };
  const auto& submissions = index_->submissions();
  const auto places = places_in_queue(submissions, std::move(challenges), [&](int number) {
    return is_judged(site.folder_of(*find(number)));
  });
  for (const auto& [number, ahead] : places) {
    auto& running = find(number)->running;
    if (running) running->ahead = ahead;
  }
}

Site read_site(const ResultsDirectory& results, std::vector<Challenge> challenges,
               const ResultsDirectory::Report& report) {
  return SiteReader(results, std::move(challenges), report).read();
}

}  // namespace kjudge
