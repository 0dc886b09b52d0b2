// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/evaluation.h"
#include "store/results.h"

namespace kjudge {

// By which a file is known to be as it was read.
struct FileStamp {
  std::int64_t modified_ns = 0, inode = 0;
  bool operator==(const FileStamp&) const = default;
};

// What a queue must know of an evaluation.
struct IndexedEvaluation {
  int number = 0;
  FileStamp stamp;  // of result.json
  std::string id;   // a copied evaluation has the first one's
  std::string challenge;
  int challenge_version = 1;
  std::string challenge_sha256;
  std::string arch;
  std::string device_kind;
  int method = 0;
  Verdict verdict = Verdict::judge_error;
  std::string message;  // of a judge error, else empty
};

struct IndexedSubmission {
  SubmissionIdentity identity;
  FileStamp stamp;  // of submission.json
  std::vector<IndexedEvaluation> evaluations;
  bool damaged = false;  // an evaluation cannot be read
  double claimed = 0;    // when it was last, seconds since 1970; 0: never
};

// "NVIDIA H200" without its UUID; of processors just the arch, for their times are no contest's.
std::string device_kind(const std::string& arch, const std::string& device);

// All of a results directory, read once: what has not changed since is not read again.
class StoreIndex {
 public:
  // Reports each bad file once.
  StoreIndex(const ResultsDirectory& results, ResultsDirectory::Report report);

  // Reads what is new; ascending by number. A submission of version 1 of the layout has the
  // challenge that version 1's evaluations here are of, or none.
  const std::vector<IndexedSubmission>& refresh();

 private:
  void read(IndexedSubmission& submission);
  void told(const std::string& line);

  const ResultsDirectory& results_;
  ResultsDirectory::Report report_;
  std::vector<IndexedSubmission> submissions_;
  std::vector<std::string> told_;
};

}  // namespace kjudge
