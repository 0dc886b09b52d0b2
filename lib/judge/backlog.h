// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/score_index.h"

namespace kjudge {

struct Waiting {
  const ScoredSubmission* submission;
  // Judged already, of the same files, whose evaluation answers this one too; null: none.
  const ScoredSubmission* answered_by = nullptr;
  const ScoredEvaluation* answer = nullptr;
};

struct LeftError {
  const ScoredSubmission* submission;
  const ScoredEvaluation* evaluation;
};

struct Backlog {
  std::vector<Waiting> waiting;         // whose turn it is first
  std::vector<LeftError> judge_errors;  // after all attempts
  // What asks for another GPU, or for shapes that this one does not run.
  std::vector<const ScoredSubmission*> for_others;
  // What waits for the verdict of another that waits: it, and the other.
  std::vector<std::pair<const ScoredSubmission*, const ScoredSubmission*>> same_as_waiting;
};

struct BacklogOptions {
  // Whether a judge error of the submission of this number is no verdict; empty: of none.
  std::function<bool(int)> again;
  std::vector<Shape> shapes;           // that the device of the terms runs; empty: not known
  std::set<std::string_view> invalid;  // ids of evaluations that answer nobody
  std::set<int> left_out;              // numbers of submissions that nobody waits for
};

// What has no evaluation on these terms. A submission waits since it was received, or since its
// owner last had a turn, whichever is later, and who waits longest is first: so somebody's hundred,
// of however many runs, do not block another's one, and nobody waits for ever. An owner is the name
// of a token; of what the organizer handed in each run is one. Of several with the same files that
// ask for the same shapes only the first waits, until it has a verdict; the newest one that is
// valid answers the others. Who keeps files is answered by who does too, for else there is no
// recording. What cannot be read is for a person to look at, not for a second verdict. Refers to
// `submissions`. Fault::usage when one was judged for other files under the same version of the
// challenge.
Backlog backlog(const std::vector<ScoredSubmission>& submissions, const Terms& terms,
                const BacklogOptions& options = {});

// How many are before each that waits, as the judges of each challenge will take them: by number.
// `challenges` may have more than submissions name. What `is_judged` says of a number is judged
// now, and before nobody. One that waits for another's verdict on the same files is after that one.
std::map<int, int> places_in_queue(const std::vector<ScoredSubmission>& submissions,
                                   std::set<std::string> challenges,
                                   const std::function<bool(int)>& is_judged);

}  // namespace kjudge
