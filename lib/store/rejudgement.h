// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/evaluation.h"
#include "store/records.h"
#include "store/selection.h"

namespace kjudge {

// A set of evaluations that are made again beside the old ones, compared, and then either applied
// or dropped:
//   rejudgements/3/rejudgement.json   which, and why
//   rejudgements/3/evaluations/42/    the new evaluation of submission 42, as in its own folder;
//                                     appears whole and for good
//   rejudgements/3/applied.json       each became the next evaluation of its submission
//   rejudgements/3/dropped.json       nobody will apply it

struct Rejudged {
  int submission = 0, evaluation = 0;  // that is made again
  std::string id, run;
};
struct Rejudgement {
  std::string challenge;
  int challenge_version = 1;
  Selection selection;  // that the set was made of, for readers
  std::string reason, made;
  std::vector<Rejudged> evaluations;  // one of each submission
};
const FieldTable<Rejudgement>& rejudgement_table();
inline constexpr const char* kRejudgementRecord = "rejudgement";

// What became of a set.
enum class RejudgementState { open, applied, dropped };
std::string_view name(RejudgementState state);
struct RejudgementEnd {
  std::string at;  // UTC, RFC 3339
};
// applied.json and dropped.json.
const FieldTable<RejudgementEnd>& rejudgement_end_table();
JsonFormat rejudgement_end_json_format();

// A set, by its number.
class RejudgementSet {
 public:
  // Fault::usage when there is none; Fault::malformed.
  RejudgementSet(const ResultsDirectory& results, int number);

  int number() const { return number_; }
  const std::filesystem::path& folder() const { return folder_; }
  const Rejudgement& record() const { return record_; }
  RejudgementState state() const;
  // applied.json or dropped.json; what is there already stays. Fault::usage when it ended the other
  // way.
  void end(RejudgementState state) const;

  // Where the new evaluation of a submission lies, or will.
  std::filesystem::path evaluation(int submission) const;
  // nullopt: not judged yet. Faults as result_from_json.
  std::optional<Evaluation> result(int submission) const;

 private:
  int number_;
  std::filesystem::path folder_;
  Rejudgement record_;
};

}  // namespace kjudge
