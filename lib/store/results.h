// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "file.h"
#include "json.h"
#include "replay/evaluation.h"

namespace kjudge {

// A results directory: plain files, the source of truth.
//   submissions/42/submission.json   identity
//   submissions/42/files/            what was handed in
//   submissions/42/evaluations/1/    result.json, secret.json, bundle.kjb when there is one,
//   log.txt
// Each numbered folder appears whole, by a rename that replaces nothing, after its files were
// synced; a folder whose name begins with a dot is unfinished and ignored, and swept by the next
// holder of the lock. So kill -9 at any point loses nothing that was there.

struct SubmissionIdentity {
  int number = 0;
  std::string id;  // UUID
  std::string run;
  std::string name;      // of the file or folder handed in
  std::string sha256;    // of its files, see store/submission_files.h
  std::string received;  // UTC, RFC 3339
};

struct StoredSubmission {
  SubmissionIdentity identity;
  std::filesystem::path folder;
  std::vector<int> evaluations;  // ascending
};

// What the hidden inputs and the order of an evaluation follow from, and with them the same
// evaluation can be made again. It lies beside the result, for the organizer's eyes, and is written
// after the submission's code has ended.
struct ReplaySecret {
  std::string evaluation;  // UUID
  std::string secret;      // 64 hexadecimal digits
  std::uint64_t order_seed = 0;
};
ReplaySecret draw_replay_secret();
// That of an evaluation's folder. Fault::usage where there is none: it was judged by a kjudge that
// kept none. Fault::malformed with file and field.
ReplaySecret read_replay_secret(const std::filesystem::path& evaluation);

// One evaluation being written: fill the folder, then commit.
class NewEvaluation {
 public:
  NewEvaluation(const StoredSubmission& submission);
  ~NewEvaluation();
  NewEvaluation(const NewEvaluation&) = delete;
  NewEvaluation& operator=(const NewEvaluation&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // Returns the evaluation's number, which the submission's `evaluations` then ends with.
  int commit(StoredSubmission& submission, const Evaluation& evaluation,
             const ReplaySecret& secret);

 private:
  std::filesystem::path folder_;
};

class ResultsDirectory {
 public:
  // Called with a line about each file that is skipped because it cannot be read.
  using Report = std::function<void(const std::string&)>;

  // For reading. Fault::usage when there is no such directory.
  explicit ResultsDirectory(const std::filesystem::path& path);
  // For writing: made if need be; one writer at a time. nullopt when another process has it.
  static std::optional<ResultsDirectory> lock(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // Ascending by number.
  std::vector<StoredSubmission> submissions(const Report& report) const;
  // Fault::usage when there is no submission `number`.
  StoredSubmission submission(int number) const;

  // Puts `from` (see copy_submission, with its faults) under the next number. The same run with the
  // same bytes is there once: then its number is returned and nothing is written.
  int add(const std::filesystem::path& from, const std::string& run, std::uint64_t limit_bytes,
          const std::vector<StoredSubmission>& present);

 private:
  ResultsDirectory() = default;
  std::filesystem::path path_;
  Fd lock_;
};

// submission.json, secret.json.
JsonFormat submission_json_format();
JsonFormat secret_json_format();

// Newest evaluation of a submission; nullopt when it has none. Faults as result_from_json.
std::optional<Evaluation> latest_evaluation(const StoredSubmission& submission);

std::string utc_now();  // RFC 3339, seconds

}  // namespace kjudge
