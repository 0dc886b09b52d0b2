// SPDX-License-Identifier: Apache-2.0
#include "store/index.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

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
  const fs::path kernels = file.parent_path() / "kernels.sha256";
  if (fs::exists(kernels)) indexed.kernels = read_file(kernels, 65).substr(0, 64);
  return indexed;
}

const FieldTable<FileStamp>& stamp_table() {
  using S = FileStamp;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  static const FieldTable<S> table({
      required("modified_ns", &S::modified_ns, integer_kind<std::int64_t>(-kMost, kMost),
               "the file's time of modification, since 1970"),
      required("inode", &S::inode, integer_kind<std::int64_t>(-kMost, kMost), "the file's number"),
  });
  return table;
}

const FieldTable<IndexedEvaluation>& evaluation_table() {
  using E = IndexedEvaluation;
  std::vector<std::pair<std::string, Verdict>> verdicts;
  for (int i = 0; i <= static_cast<int>(Verdict::judge_error); ++i) {
    verdicts.emplace_back(name(static_cast<Verdict>(i)), static_cast<Verdict>(i));
  }
  static const FieldTable<E> table({
      required("number", &E::number, integer_kind(1, 1 << 30), "of the evaluation"),
      required("stamp", &E::stamp, object_kind(stamp_table()), "of result.json"),
      required("id", &E::id, line_kind(), "as in result.json, like those that follow"),
      required("challenge", &E::challenge, line_kind(), "name"),
      required("challenge_version", &E::challenge_version, integer_kind(1, 1 << 30), "version"),
      required("challenge_sha256", &E::challenge_sha256, line_kind(), "its files"),
      required("arch", &E::arch, line_kind(), "of the device"),
      required("device_kind", &E::device_kind, line_kind(),
               "the device without its UUID; of processors the arch"),
      required("method", &E::method, integer_kind(1, 1 << 30), "how it was measured"),
      required("verdict", &E::verdict, word_kind(std::move(verdicts)), "what became of it"),
      optional("message", &E::message, text_kind(), "of a judge error"),
      optional("kernels", &E::kernels, line_kind(0, 64), "as kernels.sha256 has it"),
  });
  return table;
}

const FieldTable<IndexedSubmission>& entry_table() {
  using S = IndexedSubmission;
  static const FieldTable<S> table({
      required("number", &S::number, integer_kind(1, 1 << 30), "of the submission"),
      required("stamp", &S::stamp, object_kind(stamp_table()), "of submission.json"),
      required("submission", &S::identity, object_kind(submission_table()), "submission.json"),
      required("evaluations", &S::evaluations, list_kind(object_kind(evaluation_table())),
               "those that can be read"),
  });
  return table;
}

struct IndexFile {
  std::vector<IndexedSubmission> submissions;
};

const FieldTable<IndexFile>& index_table() {
  static const FieldTable<IndexFile> table({
      format_field<IndexFile>("kjudge-index/1"),
      required("submissions", &IndexFile::submissions, list_kind(object_kind(entry_table())),
               "those that can be read"),
  });
  return table;
}

fs::path index_path(const fs::path& results) { return results / "index.json"; }

// Version 1 of the layout held one challenge, named by its results only.
void name_challenges(std::vector<IndexedSubmission>& submissions) {
  std::string unnamed;
  for (const IndexedSubmission& one : submissions) {
    if (!one.identity.challenge.empty() || one.evaluations.empty()) continue;
    unnamed = one.evaluations.front().challenge;
    break;
  }
  for (IndexedSubmission& one : submissions) {
    one.challenge = one.identity.challenge.empty() ? unnamed : one.identity.challenge;
  }
}

}  // namespace

std::optional<FileStamp> stamp_of(const fs::path& path) { return stamp_at(AT_FDCWD, path.c_str()); }

std::optional<FileStamp> stamp_at(int folder, const char* name) {
  struct stat status {};
  if (::fstatat(folder, name, &status, 0) != 0) return std::nullopt;
  return FileStamp{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                   static_cast<std::int64_t>(status.st_ino)};
}

std::string device_kind(const std::string& arch, const std::string& device) {
  return arch == "x86_64" ? arch : device.substr(0, device.rfind(' '));
}

JsonFormat index_json_format() { return json_format(index_table()); }

std::vector<IndexedSubmission> read_index(const fs::path& results) {
  const fs::path path = index_path(results);
  const std::string file = path.string();
  const Json json = parse_json(read_file(path), file, Fault::malformed, {.values = 100'000'000});
  auto submissions = index_table().read(JsonCursor(json, file, Fault::malformed)).submissions;
  for (IndexedSubmission& one : submissions) one.identity.number = one.number;
  return submissions;
}

StoreIndex::StoreIndex(const ResultsDirectory& results, ResultsDirectory::Report report,
                       Begin begin)
    : results_(results), report_(std::move(report)) {
  if (begin == Begin::from_nothing) return;
  try {
    submissions_ = read_index(results.path());
    changed_ = false;
  } catch (const Error&) {
    // It is made anew.
  }
}

void StoreIndex::save() {
  if (!changed_) return;
  write_file_atomically(index_path(results_.path()),
                        print_flat_json(Json{index_table().write({submissions_})}) + "\n");
  changed_ = false;
}

void StoreIndex::tell(const std::string& line) {
  if (std::find(told_.begin(), told_.end(), line) != told_.end()) return;
  told_.push_back(line);
  report_(line);
}

void StoreIndex::read(IndexedSubmission& submission) {
  const fs::path folder = results_.path() / "submissions" / std::to_string(submission.number);
  const auto claims = status_of_file(folder / "claims");
  submission.claimed = claims ? static_cast<double>(claims->st_mtim.tv_sec) +
                                    1e-9 * static_cast<double>(claims->st_mtim.tv_nsec)
                              : 0;
  submission.damaged = false;
  const std::vector<IndexedEvaluation> known = std::exchange(submission.evaluations, {});
  for (const int number : numbered(folder / "evaluations")) {
    const fs::path file = folder / "evaluations" / std::to_string(number) / "result.json";
    const auto stamp = stamp_of(file);
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& evaluation) {
      return evaluation.number == number && stamp && evaluation.stamp == *stamp;
    });
    if (same != known.end()) {
      submission.evaluations.push_back(*same);
      continue;
    }
    try {
      submission.evaluations.push_back(read_evaluation(file, number, stamp.value_or(FileStamp{})));
    } catch (const Error& error) {
      submission.damaged = true;
      tell(error.what());
    }
  }
  changed_ = changed_ || submission.evaluations != known;
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
        [](const IndexedSubmission& one, int wanted) { return one.number < wanted; });
    IndexedSubmission submission;
    if (same != known.end() && same->number == number && stamp && same->stamp == *stamp) {
      submission = std::move(*same);
    } else {
      try {
        submission.number = number;
        submission.identity = results_.submission(number).identity;
        changed_ = true;
        submission.stamp = stamp.value_or(FileStamp{});
      } catch (const Error& error) {
        tell(error.what());
        continue;
      }
    }
    read(submission);
    submissions_.push_back(std::move(submission));
  }
  changed_ = changed_ || submissions_.size() != known.size();
  name_challenges(submissions_);
  return submissions_;
}

}  // namespace kjudge
