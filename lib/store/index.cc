// SPDX-License-Identifier: Apache-2.0
#include "store/index.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "error.h"
#include "file.h"
#include "score/result_json.h"
#include "store/numbered_folders.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

std::optional<struct stat> status_of_file(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::optional(status) : std::nullopt;
}

std::optional<FileStamp> stamp_of(const fs::path& path) {
  const auto status = status_of_file(path);
  if (!status) return std::nullopt;
  return FileStamp{status->st_mtim.tv_sec * 1'000'000'000 + status->st_mtim.tv_nsec,
                   static_cast<std::int64_t>(status->st_ino)};
}

IndexedEvaluation read_evaluation(const fs::path& file, int number, const FileStamp& stamp) {
  const Evaluation evaluation = result_from_json(read_file(file), file);
  IndexedEvaluation indexed;
  indexed.number = number;
  indexed.stamp = stamp;
  indexed.id = evaluation.id;
  indexed.challenge = evaluation.challenge;
  indexed.challenge_version = evaluation.challenge_version;
  indexed.challenge_sha256 = evaluation.challenge_sha256;
  indexed.arch = evaluation.arch;
  indexed.device_kind = device_kind(evaluation.arch, evaluation.device);
  indexed.method = evaluation.method;
  indexed.verdict = evaluation.verdict;
  if (evaluation.verdict == Verdict::judge_error) indexed.message = evaluation.message;
  return indexed;
}

// Version 1 of the layout held one challenge, named by its results only.
void name_challenge(std::vector<IndexedSubmission>& submissions) {
  const auto unnamed = [](const IndexedSubmission& s) { return s.identity.challenge.empty(); };
  const auto judged = std::find_if(submissions.begin(), submissions.end(), [&](const auto& s) {
    return unnamed(s) && !s.evaluations.empty();
  });
  if (judged == submissions.end()) return;
  const std::string challenge = judged->evaluations.front().challenge;
  for (IndexedSubmission& submission : submissions) {
    if (unnamed(submission)) submission.identity.challenge = challenge;
  }
}

}  // namespace

std::string device_kind(const std::string& arch, const std::string& device) {
  return arch == "x86_64" ? arch : device.substr(0, device.rfind(' '));
}

StoreIndex::StoreIndex(const ResultsDirectory& results, ResultsDirectory::Report report)
    : results_(results), report_(std::move(report)) {}

void StoreIndex::told(const std::string& line) {
  if (std::find(told_.begin(), told_.end(), line) != told_.end()) return;
  told_.push_back(line);
  report_(line);
}

void StoreIndex::read(IndexedSubmission& submission) {
  const fs::path folder =
      results_.path() / "submissions" / std::to_string(submission.identity.number);
  const auto claims = status_of_file(folder / "claims");
  submission.claimed = claims ? static_cast<double>(claims->st_mtim.tv_sec) +
                                    1e-9 * static_cast<double>(claims->st_mtim.tv_nsec)
                              : 0;
  submission.damaged = false;
  std::vector<IndexedEvaluation> known = std::move(submission.evaluations);
  submission.evaluations.clear();
  for (const int number : numbered(folder / "evaluations")) {
    const fs::path file = folder / "evaluations" / std::to_string(number) / "result.json";
    const auto stamp = stamp_of(file);
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& evaluation) {
      return evaluation.number == number && stamp && evaluation.stamp == *stamp;
    });
    if (same != known.end()) {
      submission.evaluations.push_back(std::move(*same));
      continue;
    }
    try {
      submission.evaluations.push_back(read_evaluation(file, number, stamp.value_or(FileStamp{})));
    } catch (const Error& error) {
      submission.damaged = true;
      told(error.what());
    }
  }
}

const std::vector<IndexedSubmission>& StoreIndex::refresh() {
  std::vector<IndexedSubmission> known = std::move(submissions_);
  submissions_.clear();
  for (const int number : numbered(results_.path() / "submissions")) {
    const fs::path file =
        results_.path() / "submissions" / std::to_string(number) / "submission.json";
    const auto stamp = stamp_of(file);
    const auto same = std::lower_bound(
        known.begin(), known.end(), number,
        [](const IndexedSubmission& one, int wanted) { return one.identity.number < wanted; });
    IndexedSubmission submission;
    if (same != known.end() && same->identity.number == number && stamp && same->stamp == *stamp) {
      submission = std::move(*same);
    } else {
      try {
        submission.identity = results_.submission(number).identity;
        submission.stamp = stamp.value_or(FileStamp{});
      } catch (const Error& error) {
        told(error.what());
        continue;
      }
    }
    read(submission);
    submissions_.push_back(std::move(submission));
  }
  name_challenge(submissions_);
  return submissions_;
}

}  // namespace kjudge
