// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
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
// Of the file `name` in the open folder, or AT_FDCWD; nullopt where there is none.
std::optional<FileStamp> stamp_at(int folder, const char* name);
std::optional<FileStamp> stamp_of(const std::filesystem::path& path);

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
  std::string kernels;  // hash of what its recording launches; empty: not known
  bool operator==(const IndexedEvaluation&) const = default;
};

struct IndexedSubmission {
  int number = 0;
  SubmissionIdentity identity;
  std::string challenge;  // that it is for; empty: not known
  FileStamp stamp;        // of submission.json
  std::vector<IndexedEvaluation> evaluations;
  bool damaged = false;  // an evaluation cannot be read
  double claimed = 0;    // when it was last, seconds since 1970; 0: never
  bool operator==(const IndexedSubmission&) const = default;
};

// "NVIDIA H200" without its UUID; of processors just the arch, for their times are no contest's.
std::string device_kind(const std::string& arch, const std::string& device);

// All of a results directory, read once: what has not changed since is not read again. index.json
// keeps it for the next process. It is never the truth: each entry is held to the stamps of its
// files, and without the file, or with one that cannot be read, all is read anew.
class StoreIndex {
 public:
  enum class Begin { from_file, from_nothing };
  // Reports each bad file once.
  StoreIndex(const ResultsDirectory& results, ResultsDirectory::Report report,
             Begin begin = Begin::from_file);

  // Reads what is new; ascending by number. A submission of version 1 of the layout is for
  // the challenge that its evaluations there are of.
  const std::vector<IndexedSubmission>& refresh();
  // Writes index.json, where it would change.
  void save();

 private:
  void read(IndexedSubmission& submission);
  void tell(const std::string& line);

  const ResultsDirectory& results_;
  ResultsDirectory::Report report_;
  std::vector<IndexedSubmission> submissions_;
  std::vector<std::string> told_;
  bool changed_ = true;
};

// index.json.
JsonFormat index_json_format();
// Fault::malformed, Fault::host.
std::vector<IndexedSubmission> read_index(const std::filesystem::path& results);

}  // namespace kjudge
