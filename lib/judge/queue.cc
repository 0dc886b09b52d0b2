// SPDX-License-Identifier: Apache-2.0
#include "judge/queue.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "archive.h"
#include "error.h"
#include "judge/device.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "score/score.h"
#include "store/random.h"
#include "store/submission_files.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  return path.extension() == ".py" || path.extension() == ".cu";
}

std::string run_of(const fs::path& path) {
  if (fs::is_directory(path)) return path.filename();
  return is_archive(path) ? archive_stem(path) : path.stem().string();
}

std::vector<fs::path> waiting_in(const fs::path& from, const ReportLine& line) {
  if (!fs::is_directory(from)) {
    throw Error(Fault::usage, cat(from.string(), ": no folder of submissions"));
  }
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(from)) {
    const std::string name = item.path().filename();
    if (name.starts_with('.')) continue;
    if (std::any_of(name.begin(), name.end(),
                    [](unsigned char c) { return c < ' ' || c == 127; })) {
      line(cat(name, ": left out: its name has a control character; rename it"));
      continue;
    }
    std::string_view why_not;
    std::error_code error;
    if (item.is_symlink(error)) {  // judge may read what whoever made the link may not
      why_not = "a link; put the file or folder itself in its place";
    } else if (item.is_directory(error)) {
      if (entry_file(item.path()).empty()) {
        why_not = "a folder without submission.py or submission.cu at its root";
      }
    } else if (!item.is_regular_file(error)) {
      why_not = "not a file or folder";
    } else if (!is_source(item.path()) && !is_archive(item.path())) {
      why_not = "neither a .py or .cu file nor an archive nor a folder";
    }
    if (why_not.empty()) {
      found.push_back(item.path());
    } else {
      line(cat(name, ": left out: ", why_not));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void enqueue(ResultsDirectory& results, const Challenge& challenge, const fs::path& from,
             const ReportLine& line) {
  const auto present = results.submissions(line);
  for (const fs::path& path : waiting_in(from, line)) {
    check_interrupt();
    const std::string run = run_of(path);
    try {
      results.add(path, run, challenge.limits.submission_bytes, present);
    } catch (const Error& error) {
      if (error.fault() != Fault::submission) throw;
      line(cat(path.filename().string(), ": refused: ", error.what()));
    }
  }
}

// Once per version of the challenge, arch and method. A results directory holds one challenge: a
// ranking of two says nothing, and neither does one of two states of the same version.
bool is_judged(const StoredSubmission& submission, const Challenge& challenge,
               const std::string& arch, const ReportLine& line) {
  std::optional<Evaluation> latest;
  try {
    latest = latest_evaluation(submission);
  } catch (const Error& error) {
    line(error.what());
    return true;  // a bad file is for a person to look at, not for a second verdict
  }
  if (!latest) return false;
  if (latest->challenge != challenge.name) {
    throw Error(Fault::usage, cat("these are results of challenge ", latest->challenge, ", not of ",
                                  challenge.name, "; name another results directory"));
  }
  if (latest->challenge_version == challenge.version &&
      latest->challenge_sha256 != challenge.sha256) {
    throw Error(Fault::usage,
                cat("challenge ", challenge.name, " was changed since submission ",
                    submission.identity.number, " was judged, and its version is still ",
                    challenge.version, "; raise the version, and all are judged again"));
  }
  return latest->verdict != Verdict::judge_error &&
         latest->challenge_version == challenge.version && latest->arch == arch &&
         latest->method == kMethod;
}

Evaluation judge_one(const Driver& driver, const Challenge& challenge, const QueueOptions& options,
                     StoredSubmission& submission, const ReportProgress& progress) {
  NewEvaluation folder(submission);
  EvaluateOptions evaluate_options;
  evaluate_options.submission = submission.folder / "files";
  evaluate_options.cache = options.cache;
  evaluate_options.keep_bundle = folder.folder() / "bundle.kjb";
  evaluate_options.replay = options.replay;
  evaluate_options.sandbox = options.sandbox;
  Evaluation evaluation;
  ReplaySecret secret;
  for (int attempt = 1; attempt <= options.attempts; ++attempt) {
    secret = draw_replay_secret();
    evaluate_options.replay.evaluation = secret.evaluation;
    evaluate_options.replay.secret = secret.secret;
    evaluate_options.replay.order_seed = secret.order_seed;
    evaluation = evaluate(driver, challenge, evaluate_options, progress);
    if (evaluation.verdict != Verdict::judge_error) break;
  }
  evaluation.submission = submission.identity.name;
  folder.commit(submission, evaluation, secret);
  return evaluation;
}

}  // namespace

std::optional<std::vector<JudgedSubmission>> judge_queue(const Driver& driver,
                                                         const Challenge& challenge,
                                                         const QueueOptions& options,
                                                         const ReportLine& line,
                                                         const ReportProgress& progress) {
  auto results = ResultsDirectory::lock(options.results);
  if (!results) return std::nullopt;
  const std::string arch = identify(driver, options.replay.device).arch;
  const auto judged_before = [&](const StoredSubmission& submission) {
    return is_judged(submission, challenge, arch, line);
  };
  // Before any is added: a wrong challenge is refused with nothing written.
  auto submissions = results->submissions(line);
  std::for_each(submissions.begin(), submissions.end(), judged_before);
  if (!options.from.empty()) enqueue(*results, challenge, options.from, line);
  submissions = results->submissions([](const std::string&) {});
  std::erase_if(submissions, judged_before);
  std::vector<JudgedSubmission> judged;
  for (StoredSubmission& submission : submissions) {
    check_interrupt();
    const std::string label = cat(submission.identity.number, " ", submission.identity.run, ": ");
    const Evaluation evaluation =
        judge_one(driver, challenge, options, submission, [&](const Progress& now) {
          if (progress) progress({label + now.step, now.shape, now.done});
        });
    line(label + summary(evaluation));
    judged.push_back({submission.identity, evaluation});
  }
  return judged;
}

std::vector<Entry> collect_entries(const ResultsDirectory& results, const ReportLine& line) {
  struct Found {
    SubmissionIdentity identity;
    Evaluation evaluation;
  };
  std::vector<Found> all;
  for (const StoredSubmission& submission : results.submissions(line)) {
    try {
      if (auto evaluation = latest_evaluation(submission)) {
        all.push_back({submission.identity, std::move(*evaluation)});
      }
    } catch (const Error& error) {
      line(error.what());
    }
  }
  const auto terms = [](const Evaluation& evaluation) {
    return std::tie(evaluation.challenge, evaluation.challenge_version, evaluation.challenge_sha256,
                    evaluation.arch, evaluation.method);
  };
  const auto newest = std::max_element(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return a.evaluation.started < b.evaluation.started;
  });
  std::map<std::string, Entry> best;  // by run
  for (const Found& found : all) {
    const std::string submission_name = std::to_string(found.identity.number);
    if (terms(found.evaluation) != terms(newest->evaluation)) {
      line(
          cat("submission ", submission_name,
              ": judged for another challenge, version, arch or method; left out of this ranking"));
      continue;
    }
    const Entry entry{submission_name, found.identity.run, score(found.evaluation)};
    if (!entry.score.ranked) continue;
    const auto [at, first] = best.try_emplace(entry.run, entry);
    if (!first && entry.score.speedup > at->second.score.speedup) at->second = entry;
  }
  std::vector<Entry> entries;
  for (auto& [run, entry] : best) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace kjudge
