// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "web/site.h"

namespace kjudge {

// The pages of a site as text. Pure: the same site gives the same bytes.

std::string front_page(const Site& site, const std::vector<Leaderboard>& boards);
// Of one version of a challenge. Without its folder, of what the evaluations say of it.
std::string challenge_page(const Site& site, const std::vector<Leaderboard>& boards,
                           const std::string& challenge, int version, const std::string& task);
std::string leaderboard_page(const Leaderboard& board, const std::vector<Leaderboard>& boards);
// The submissions of a run.
std::string run_page(const Site& site, const std::string& run);

struct EvaluationPage {
  const SubmissionSummary& submission;
  const EvaluationSummary& summary;
  const Evaluation& evaluation;             // with times and log
  const Score& score;                       // its
  std::vector<EvaluationKey> same_kernels;  // of other submissions, ascending; not all of
                                            // more than kMostSameKernels are named
  std::optional<EvaluationKey> previous;    // of the same run, to compare with
  std::optional<EvaluationKey> best;        // of the leaderboard
  std::string board;                        // address of the leaderboard; empty: on none
  const Challenge* challenge = nullptr;     // where its checks are known
};
std::string evaluation_page(const EvaluationPage& page);
// The code of a submission that may be shown: name and contents of each file.
std::string code_page(const SubmissionSummary& submission,
                      const std::vector<std::pair<std::string, std::string>>& files);
// Of an evaluation that is not there yet, at the address it will have. Loads itself again.
std::string running_page(const SubmissionSummary& submission);

std::string profile_page(const EvaluationKey& key, const std::string& run, const Profile& profile);
// Every metric of every kernel: kernel, name, grid, block, metric, unit, value.
std::string profile_csv(const Profile& profile);

struct ComparedEvaluation {
  EvaluationKey key;
  std::string run;
  Evaluation evaluation;
  Score score;
  std::vector<Profile> profiles;
};
std::string comparison_page(const ComparedEvaluation& left, const ComparedEvaluation& right);

}  // namespace kjudge
