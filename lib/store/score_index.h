// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "score/score.h"
#include "store/index.h"
#include "store/results.h"
#include "store/submission_notes.h"
#include "store/terms.h"

namespace kjudge {

// What the standings must know of an evaluation.
struct ScoredEvaluation {
  int number = 0;
  FileStamp stamp;          // of result.json
  std::uint32_t terms = 0;  // which of the index's
  std::string id, started, node;
  Verdict verdict = Verdict::judge_error;
  bool ranked = false;
  double speedup = 0;
  Interval interval;
  std::vector<ShapeScore> shapes;  // where it is ranked
};

struct ScoredSubmission {
  int number = 0;
  FileStamp stamp;   // of submission.json
  FileStamp folder;  // of evaluations/; zeros: to be looked at again
  std::string run, received;
  SubmissionNotes notes;
  bool kept = true;                           // else its evaluations are not ranked
  std::vector<ScoredEvaluation> evaluations;  // ascending; those that can be read
};

// The scores of a results directory: each evaluation read and scored once. scores.index keeps them
// for the next process. Like index.json it is never the truth: what it has of a file is held to the
// stamp of the file, and without it, or with one that is damaged or that another rule of scoring
// made, all is read anew. A hundred thousand evaluations are looked through in less than a second.
class ScoreIndex {
 public:
  enum class Begin { from_file, from_nothing };
  // Reads what is new. Reports each bad file. As many threads as there are processors.
  ScoreIndex(const ResultsDirectory& results, const ResultsDirectory::Report& report,
             Begin begin = Begin::from_file);

  const std::vector<ScoredSubmission>& submissions() const { return submissions_; }
  const Terms& terms(const ScoredEvaluation& evaluation) const { return terms_[evaluation.terms]; }
  const std::vector<Terms>& all_terms() const { return terms_; }
  // nullptr: there is none, or it cannot be read.
  const ScoredSubmission* find(int number) const;
  // The score of a ranked evaluation; of one that is not it says so.
  Score score_of(const ScoredEvaluation& evaluation) const;

  // What became of scores.index when this began.
  enum class FromFile { absent, used, outdated, damaged };
  FromFile from_file() const { return from_file_; }
  // Whether both say the same of the same evaluations.
  bool agrees_with(const ScoreIndex& other) const;

  // Writes scores.index, where it would change. Where it cannot be written it is not: the next
  // process reads the files.
  void save() const;

 private:
  FromFile load();
  void refresh(const ResultsDirectory::Report& report);

  std::filesystem::path results_;
  std::vector<ScoredSubmission> submissions_;
  std::vector<Terms> terms_;
  FromFile from_file_ = FromFile::absent;
  bool changed_ = true;
};

}  // namespace kjudge
