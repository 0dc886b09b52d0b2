// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "bundle/bundle.h"
#include "error.h"
#include "file.h"
#include "judge/backlog.h"
#include "judge/kernels_hash.h"
#include "score/result_json.h"
#include "store/index.h"
#include "store/numbered_folders.h"
#include "store/standings.h"
#include "web/site.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// Larger bundles are not opened for a line on a page.
constexpr std::uint64_t kBundleBytes = std::uint64_t{256} << 20;

fs::path evaluation_folder(const StoredSubmission& submission, int number) {
  return submission.folder / "evaluations" / std::to_string(number);
}

// Of the recording of an evaluation that was judged before there was kernels.sha256.
std::string kernels_of(const fs::path& bundle) {
  std::error_code error;
  const auto size = fs::file_size(bundle, error);
  if (error || size > kBundleBytes) return {};
  return kernels_sha256(BundleReader(bundle).bundle());
}

// The shapes of an evaluation by the dtype that the challenge gives them, if it has several.
std::vector<std::pair<std::string, Score>> scores_by_dtype(const Evaluation& evaluation,
                                                           const Challenge* challenge) {
  if (challenge == nullptr) return {};
  std::map<std::string, std::string> dtype_of;  // by shape
  for (const Shape& shape : challenge->shapes) dtype_of[shape.name] = shape.dtype;
  std::map<std::string, Evaluation> parts;
  for (const ShapeFacts& shape : evaluation.shapes) {
    const auto [part, is_new] = parts.try_emplace(dtype_of[shape.name]);
    if (is_new) {
      part->second = evaluation;
      part->second.shapes.clear();
    }
    part->second.shapes.push_back(shape);
  }
  std::vector<std::pair<std::string, Score>> scores;
  if (parts.size() < 2) return scores;
  for (const auto& [dtype, part] : parts) scores.emplace_back(dtype, score(part));
  return scores;
}

const Challenge* find_challenge_of(const std::vector<Challenge>& challenges,
                                   const Evaluation& evaluation) {
  for (const Challenge& one : challenges) {
    if (one.name == evaluation.challenge && one.version == evaluation.challenge_version &&
        one.sha256 == evaluation.challenge_sha256) {
      return &one;
    }
  }
  return nullptr;
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
    if (!may_publish(one, notes)) return false;
    any = true;
  }
  return any && identity.keep;
}

void set_unverified(Score& score) {
  if (!score.ranked) return;
  score.ranked = false;
  score.why_not = "unverified: its files were not to be kept";
}

EvaluationSummary summarize(const StoredSubmission& submission, const IndexedEvaluation& indexed,
                            const std::vector<Challenge>& challenges, const ReportLine& report) {
  const int number = indexed.number;
  EvaluationSummary summary;
  summary.number = number;
  summary.facts = read_evaluation(submission, number);
  summary.score = score(summary.facts);
  summary.dtype_scores =
      scores_by_dtype(summary.facts, find_challenge_of(challenges, summary.facts));
  if (!submission.identity.keep) {
    for (auto& [dtype, score] : summary.dtype_scores) set_unverified(score);
    set_unverified(summary.score);
  }
  for (ShapeFacts& shape : summary.facts.shapes) shape.rounds = {};
  summary.facts.log = {};
  try {
    summary.kernels = indexed.kernels;
    if (summary.kernels.empty()) {
      summary.kernels = kernels_of(evaluation_folder(submission, number) / "bundle.kjb");
    }
  } catch (const Error& error) {
    report(error.what());
  }
  for (const Profile& profile : read_profiles(submission, number, report)) {
    summary.profiled.push_back(profile.shape);
  }
  return summary;
}

}  // namespace

Evaluation read_evaluation(const StoredSubmission& submission, int number) {
  const fs::path path = evaluation_folder(submission, number) / "result.json";
  return result_from_json(read_file(path), path);
}

std::vector<Profile> read_profiles(const StoredSubmission& submission, int number,
                                   const ReportLine& report) {
  std::map<std::string, Profile> by_shape;
  for (const fs::path& path : profile_files(evaluation_folder(submission, number))) {
    try {
      Profile profile = profile_from_json(read_file(path), path);
      by_shape[profile.shape] = std::move(profile);
    } catch (const Error& problem) {
      report(problem.what());
    }
  }
  std::vector<Profile> profiles;
  for (auto& [shape, profile] : by_shape) profiles.push_back(std::move(profile));
  return profiles;
}

const Challenge* Site::challenge(const std::string& name, int version) const {
  for (const Challenge& one : challenges) {
    if (one.name == name && one.version == version) return &one;
  }
  return nullptr;
}

const Challenge* Site::challenge_of(const Evaluation& evaluation) const {
  return find_challenge_of(challenges, evaluation);
}

SiteReader::SiteReader(const ResultsDirectory& results, std::vector<Challenge> challenges,
                       ReportLine report)
    : results_(results),
      challenges_(std::move(challenges)),
      report_(std::move(report)),
      index_(results, report_) {}

const EvaluationSummary* SiteReader::summary_of(const StoredSubmission& submission,
                                                const IndexedEvaluation& evaluation) {
  const EvaluationKey key{submission.identity.number, evaluation.number};
  // A profile may come later, which changes the folder.
  const FileStamp folder =
      stamp_of(evaluation_folder(submission, evaluation.number)).value_or(FileStamp{});
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.result == evaluation.stamp &&
      known->second.folder == folder) {
    return &known->second.summary;
  }
  try {
    Known read{evaluation.stamp, folder, summarize(submission, evaluation, challenges_, report_)};
    return &known_.insert_or_assign(key, std::move(read)).first->second.summary;
  } catch (const Error& error) {
    report_(error.what());
    return nullptr;
  }
}

std::vector<std::vector<int>> SiteReader::record_numbers() const {
  std::vector<std::vector<int>> all;
  for (const char* kind : {kBarRecord, kInvalidationRecord, kPlayOffRecord}) {
    all.push_back(numbered(record_folder(results_.path(), kind)));
  }
  return all;
}

bool SiteReader::look() { return index_.refresh() != seen_ || record_numbers() != records_; }

Records<Invalidation> SiteReader::invalidations() const {
  return standing(read_records(results_, kInvalidationRecord, invalidation_table(), report_));
}

SubmissionSummary SiteReader::summary_of(const IndexedSubmission& indexed,
                                         const Records<Invalidation>& invalidations) {
  SubmissionSummary submission;
  StoredSubmission& stored = submission.stored;
  stored.identity = indexed.identity;
  stored.identity.challenge = indexed.challenge;
  stored.folder = results_.path() / "submissions" / std::to_string(indexed.number);
  // The index has those that can be read.
  stored.evaluations = numbered(stored.folder / "evaluations");
  submission.notes = read_submission_notes(stored.folder / "files");
  submission.published = is_published(challenges_, stored.identity, submission.notes);
  for (const IndexedEvaluation& evaluation : indexed.evaluations) {
    if (const auto* summary = summary_of(stored, evaluation)) {
      submission.evaluations.push_back(*summary);
      submission.evaluations.back().invalid =
          invalid_reasons(invalidations, selectable(stored.identity, summary->facts));
    }
  }
  // As the queue has it: what kjudge failed at is judged again.
  const bool failed = !submission.evaluations.empty() &&
                      submission.evaluations.back().number == stored.evaluations.back() &&
                      submission.evaluations.back().facts.verdict == Verdict::judge_error;
  if (stored.evaluations.empty() || failed) submission.running.emplace();
  if (indexed.claimed > 0) {
    if (const auto running = read_running(stored.folder)) submission.running = running;
  }
  return submission;
}

Site SiteReader::read() {
  seen_ = index_.refresh();
  records_ = record_numbers();
  Site site;
  site.challenges = challenges_;
  site.bars = standing(read_records(results_, kBarRecord, bar_table(), report_));
  site.play_offs = read_play_offs(results_, report_);
  const auto invalid = invalidations();
  for (const IndexedSubmission& indexed : seen_) {
    site.submissions.push_back(summary_of(indexed, invalid));
  }
  find_places(site);
  return site;
}

Site SiteReader::read_only(int submission) {
  Site site;
  site.challenges = challenges_;
  for (const IndexedSubmission& indexed : index_.refresh()) {
    if (indexed.number == submission) {
      site.submissions.push_back(summary_of(indexed, invalidations()));
    }
  }
  return site;
}

std::size_t SiteReader::unread() {
  std::size_t count = 0;
  for (const IndexedSubmission& indexed : index_.refresh()) count += indexed.evaluations.size();
  return count - std::min(count, known_.size());
}

void SiteReader::find_places(Site& site) const {
  std::set<std::string> challenges;
  for (const Challenge& one : challenges_) challenges.insert(one.name);
  const auto find = [&](int number) {
    return std::lower_bound(
        site.submissions.begin(), site.submissions.end(), number,
        [](const auto& a, int wanted) { return a.stored.identity.number < wanted; });
  };
  const auto places = places_in_queue(seen_, std::move(challenges), [&](int number) {
    return is_judged(find(number)->stored.folder);
  });
  for (const auto& [number, ahead] : places) {
    auto& running = find(number)->running;
    if (running) running->ahead = ahead;
  }
}

Site read_site(const ResultsDirectory& results, std::vector<Challenge> challenges,
               const ReportLine& report) {
  return SiteReader(results, std::move(challenges), report).read();
}

}  // namespace kjudge
