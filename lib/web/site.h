// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "challenge/challenge.h"
#include "judge/profile.h"
#include "score/rank.h"
#include "store/judgements.h"
#include "store/results.h"
#include "store/running.h"
#include "store/score_index.h"
#include "store/submission_notes.h"
#include "web/address.h"

namespace kjudge {

// What the pages of a site are made from.

// One evaluation as the index has it; its own page is made from its result.
struct EvaluationSummary {
  int number = 1;  // of its submission's
  std::shared_ptr<const Terms> terms;
  std::string id, started;
  VariantRequest variant;  // that was asked for; none: all of the challenge
  Verdict verdict = Verdict::judge_error;
  Score score;                        // of all shapes, which are there where it counts
  bool timed = false;                 // a shape has times
  std::string kernels;                // the same for the same kernels; empty: not known
  std::vector<std::string> profiled;  // shapes
  std::vector<std::string> invalid;   // the reasons why it does not count; none: it does
};

struct SubmissionSummary {
  StoredSubmission stored;  // without its folder, that Site::folder_of() has: a path is large
  SubmissionNotes notes;
  bool published = false;                      // its code, and its log, are for everybody to see
  std::vector<EvaluationSummary> evaluations;  // ascending by number
  // The evaluation that comes next, if one does.
  std::optional<RunningEvaluation> running;
  int next_number() const { return stored.evaluations.empty() ? 1 : stored.evaluations.back() + 1; }
};

struct Site {
  std::filesystem::path results;               // the results directory
  std::vector<Challenge> challenges;           // those that are open
  std::vector<Challenge> kept;                 // others that something here was judged for
  std::vector<SubmissionSummary> submissions;  // ascending by number
  Records<Bar> bars;                           // standing ones
  std::vector<PlayedOff> play_offs;
  std::set<std::string> metrics;  // names in the profiles that were read
  // That of a name in this version, or in this very state; null: it is neither open nor kept.
  const Challenge* challenge(const std::string& name, int version) const;
  const Challenge* challenge_of(const Terms& terms) const;
  std::filesystem::path folder_of(const SubmissionSummary& submission) const;
};

// How many evaluations with the same kernels a page names.
inline constexpr std::size_t kMostSameKernels = 20;
// Those of other submissions whose pages name, or count, an evaluation of this one for having the
// same kernels. None where there are so many that another one changes nothing there.
std::set<EvaluationKey> same_kernels_as(const Site& site, int submission);

// Reads a site from a results directory, as often as one asks: what has not changed since is not
// read again. What cannot be read is left out, and reported.
class SiteReader {
 public:
  SiteReader(const ResultsDirectory& results, std::vector<Challenge> challenges,
             ResultsDirectory::Report report);
  // Whether read() would find anything that it did not the last time, but for profiles.
  bool look();
  Site read();
  // The same with the profiles of this submission and those of same_kernels_as() only: all that
  // pages about it need.
  Site read_about(int submission);
  // As it was for the last of these.
  const ScoreIndex& index();

 private:
  struct Profiled {
    FileStamp folder;
    std::vector<std::string> shapes;
  };
  Site read(std::optional<int> profiles_of);
  const std::vector<std::string>& profiled(int submission, int evaluation);
  SubmissionSummary summary_of(const ScoredSubmission& scored,
                               const Records<Invalidation>& invalidations);
  std::vector<std::vector<int>> record_numbers() const;  // of each kind
  void find_places(Site& site) const;
  std::vector<Challenge> kept();

  const ResultsDirectory& results_;
  std::vector<Challenge> challenges_;
  ResultsDirectory::Report report_;
  std::optional<ScoreIndex> index_;  // from when it is needed
  bool news_ = true;
  std::vector<std::vector<int>> records_;
  std::map<EvaluationKey, Profiled> profiled_;
  std::map<std::pair<std::string, int>, std::optional<Challenge>> kept_;  // by name and version
  std::set<std::string> metrics_;
};
Site read_site(const ResultsDirectory& results, std::vector<Challenge> challenges,
               const ResultsDirectory::Report& report);
// Of the folder of a submission. Faults as result_from_json.
Evaluation read_evaluation(const std::filesystem::path& submission, int number);
// profile.json and profile-*.json beside the result; by shape, the last of each.
std::vector<Profile> read_profiles(const std::filesystem::path& submission, int number,
                                   const ResultsDirectory::Report& report);

// Evaluations that compare: of the same state of a challenge, arch, kind of device and method;
// over its shapes of one dtype, over one shape, or over all of them where both are empty.
struct Variant {
  std::string challenge;
  int version = 1;
  std::string sha256, arch, device_kind;
  int method = kMethod;
  std::string dtype, shape;
  auto operator<=>(const Variant&) const = default;
};
Variant variant_of(const Terms& terms, std::string dtype = {}, std::string shape = {});
// What an evaluation was asked for.
Variant variant_of(const EvaluationSummary& evaluation);
std::string variant_name(const Variant& variant);  // "NVIDIA H200, float32"

struct LeaderboardRow {
  RankedEntry ranked;
  EvaluationKey key;
  const SubmissionSummary* submission = nullptr;
  const EvaluationSummary* evaluation = nullptr;
};
// A ranked evaluation at the time it began.
struct HistoryPoint {
  double time_s = 0;  // since 1970
  double speedup = 0;
  EvaluationKey key;
  std::string run;
};
struct Leaderboard {
  Variant variant;
  std::string address;               // leaderboard/softmax-1-sm_90.html
  std::vector<LeaderboardRow> rows;  // best first
  // Faster than the first that was judged twice, and judged once themselves (score/rank.h).
  std::vector<LeaderboardRow> pending;
  Records<Bar> bars;
  std::optional<double> target_ns;     // the challenge's, of one that is_whole()
  std::vector<LeaderboardRow> others;  // runs without a score: the newest evaluation of each
  std::vector<HistoryPoint> history;   // ascending by time
};
// As `kjudge rank` has it: of the newest valid evaluation of each submission. The variant of the
// newest evaluation of all comes first. Points into `site`.
std::vector<Leaderboard> make_leaderboards(const Site& site);

// Seconds since 1970 of "2025-01-31T12:00:00Z"; nullopt for what is no such time.
std::optional<double> seconds_of(const std::string& time);

}  // namespace kjudge
