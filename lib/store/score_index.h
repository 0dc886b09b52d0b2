// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "score/score.h"
#include "store/file_stamp.h"
#include "store/results.h"
#include "store/submission_notes.h"
#include "store/terms.h"

namespace kjudge {

// What queue, standings and pages must know of an evaluation.
struct ScoredEvaluation {
  int number = 0;
  FileStamp stamp;                     // of result.json
  std::shared_ptr<const Terms> terms;  // one for all that have the same in an index
  std::string id, started, node;
  VariantRequest variant;  // as result.json has it
  Verdict verdict = Verdict::judge_error;
  std::string message;                  // of a judge error, else empty
  std::string kernels;                  // hash of what its recording launches; empty: not known
  bool ranked = false, counts = false;  // as Score has them
  std::string why_not;                  // where it is not ranked
  bool timed = false;                   // a shape has times
  double speedup = 0;
  Interval interval;
  std::vector<ShapeScore> shapes;  // where it counts
};

struct ScoredSubmission {
  int number = 0;
  FileStamp stamp;             // of submission.json
  FileStamp folder;            // of evaluations/; zeros: to be looked at again
  FileStamp claims;            // of claims/
  bool may_be_judged = false;  // its last claim may be open
  SubmissionIdentity identity;
  std::string challenge;  // that it is for, also where its identity does not say; empty: not known
  SubmissionNotes notes;  // where its files are kept
  std::vector<ScoredEvaluation> evaluations;  // ascending; those that can be read
  std::vector<int> unreadable;                // the others
  // The highest number that an evaluation of it has, or had when somebody looked: it is lost then.
  int last_evaluation = 0;
  // When it was claimed last, seconds since 1970; 0: never.
  double claimed() const { return 1e-9 * static_cast<double>(claims.modified_ns); }
};

// All of a results directory, each evaluation read and scored once: what has not changed since is
// not read again. scores.index keeps it for the next process. It is never the truth: what it has of
// a file is held to the stamp of the file, and without it, or with one that is damaged or that
// another rule of scoring made, all is read anew. A hundred thousand evaluations are looked through
// in less than a second.
class ScoreIndex {
 public:
  enum class Begin {
    from_file,
    from_nothing  // but for the last numbers that there were, which the files do not say
  };
  // Reads what is new. Reports each bad file once.
  ScoreIndex(const ResultsDirectory& results, ResultsDirectory::Report report,
             Begin begin = Begin::from_file);

  // Reads what is new since, with as many threads as there are processors. Whether that is
  // something.
  bool refresh();
  // Looks at the evaluations of this submission again, though nothing says that there are others:
  // for who knows better than a clock.
  void forget(int submission);

  const std::vector<ScoredSubmission>& submissions() const { return submissions_; }
  const Terms& terms(const ScoredEvaluation& evaluation) const { return *evaluation.terms; }
  const std::vector<std::shared_ptr<const Terms>>& all_terms() const { return terms_; }
  // The highest number that a submission has, or had when somebody looked: it is lost then, and no
  // other gets it. Without scores.index only what is there is known.
  int last_number() const { return last_number_; }
  // Likewise of the records of each kind (store/records.h).
  const std::map<std::string, int>& last_records() const { return last_records_; }
  // nullptr: there is none, or it cannot be read.
  const ScoredSubmission* find(int number) const;
  // The score of an evaluation that counts; of one that does not it says so.
  Score score_of(const ScoredEvaluation& evaluation) const;

  // What became of scores.index when this began.
  enum class FromFile { absent, used, outdated, damaged };
  FromFile from_file() const { return from_file_; }
  // Whether both say the same of the same evaluations.
  bool agrees_with(const ScoreIndex& other) const;

  // Writes scores.index, where it would change. Where it cannot be written it is not: the next
  // process reads the files.
  void save();

 private:
  FromFile load();

  std::filesystem::path results_;
  ResultsDirectory::Report report_;
  std::set<std::string> told_;  // as described()
  std::vector<ScoredSubmission> submissions_;
  std::vector<std::shared_ptr<const Terms>> terms_;
  int last_number_ = 0;
  std::map<std::string, int> last_records_;
  FromFile from_file_ = FromFile::absent;
  bool changed_ = true;  // since it was saved
};

// The score of an evaluation of a submission that was not to be kept neither counts nor is ranked.
void set_unverified(const SubmissionIdentity& submission, Score& score);

}  // namespace kjudge
