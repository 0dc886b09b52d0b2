// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "bundle/bundle.h"
#include "error.h"
#include "file.h"
#include "score/result_json.h"
#include "sha256.h"
#include "store/index.h"
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

// Which kernels of which modules a bundle launches: the same for the same machine code, whoever
// handed it in and in whatever shape.
std::string kernels_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > kBundleBytes) return {};
  const BundleReader reader(path);
  const Bundle& bundle = reader.bundle();
  std::vector<std::string> modules;
  for (const Module& module : bundle.modules) {
    modules.push_back(
        sha256_hex({reinterpret_cast<const char*>(module.image.data()), module.image.size()}));
  }
  std::set<std::string> kernels;
  for (const CapturedShape& shape : bundle.shapes) {
    for (const Node& node : shape.graph.nodes) {
      if (const auto* kernel = std::get_if<KernelNode>(&node)) {
        kernels.insert(cat(modules.at(kernel->module), " ", kernel->name));
      }
    }
  }
  std::string all;
  for (const std::string& kernel : kernels) all += cat(kernel, "\n");
  return kernels.empty() ? "" : sha256_hex(all);
}

// The shapes of an evaluation by the dtype that the challenge gives them, if it has several.
std::vector<std::pair<std::string, Score>> scores_by_dtype(
    const Evaluation& evaluation, const std::optional<Challenge>& challenge) {
  if (!challenge || challenge->name != evaluation.challenge ||
      challenge->version != evaluation.challenge_version ||
      challenge->sha256 != evaluation.challenge_sha256) {
    return {};
  }
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

Selectable selectable(const StoredSubmission& submission, const Evaluation& facts) {
  return {submission.identity.number,
          submission.identity.run,
          facts.id,
          facts.challenge,
          facts.challenge_version,
          facts.method,
          facts.node,
          facts.arch,
          facts.started,
          device_kind(facts.arch, facts.device)};
}

EvaluationSummary summarize(const StoredSubmission& submission, int number,
                            const std::optional<Challenge>& challenge, const ReportLine& report) {
  EvaluationSummary summary;
  summary.number = number;
  summary.facts = read_evaluation(submission, number);
  summary.score = score(summary.facts);
  summary.dtype_scores = scores_by_dtype(summary.facts, challenge);
  for (ShapeFacts& shape : summary.facts.shapes) shape.rounds = {};
  summary.facts.log = {};
  try {
    summary.kernels = kernels_of(evaluation_folder(submission, number) / "bundle.kjb");
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
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(evaluation_folder(submission, number), error), end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name == "profile.json" || (name.starts_with("profile-") && name.ends_with(".json"))) {
      paths.push_back(at->path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::map<std::string, Profile> by_shape;
  for (const fs::path& path : paths) {
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

Site read_site(const ResultsDirectory& results, std::optional<Challenge> challenge,
               const ReportLine& report) {
  Site site;
  site.challenge = std::move(challenge);
  site.bars = standing(read_records(results, kBarRecord, bar_table(), report));
  site.play_offs = read_play_offs(results, report);
  const auto invalidations =
      standing(read_records(results, kInvalidationRecord, invalidation_table(), report));
  int waiting = 0;
  for (StoredSubmission& stored : results.submissions(report)) {
    SubmissionSummary& submission = site.submissions.emplace_back();
    submission.stored = std::move(stored);
    submission.notes = read_submission_notes(submission.stored.folder / "files");
    submission.published = may_publish(site.challenge, submission.notes) &&
                           (submission.stored.identity.challenge.empty() ||
                            submission.stored.identity.challenge == site.challenge->name);
    for (const int number : submission.stored.evaluations) {
      try {
        submission.evaluations.push_back(
            summarize(submission.stored, number, site.challenge, report));
        EvaluationSummary& summary = submission.evaluations.back();
        summary.invalid =
            invalid_reasons(invalidations, selectable(submission.stored, summary.facts));
      } catch (const Error& error) {
        report(error.what());
      }
    }
    // As the queue has it: what kjudge failed at is judged again.
    const bool failed =
        !submission.evaluations.empty() &&
        submission.evaluations.back().number == submission.stored.evaluations.back() &&
        submission.evaluations.back().facts.verdict == Verdict::judge_error;
    if (submission.stored.evaluations.empty() || failed) {
      submission.running.emplace();
      submission.running->ahead = waiting++;
    }
  }
  return site;
}

}  // namespace kjudge
