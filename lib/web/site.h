// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "challenge/challenge.h"
#include "judge/profile.h"
#include "score/rank.h"
#include "store/index.h"
#include "store/judgements.h"
#include "store/results.h"
#include "store/running.h"
#include "store/submission_notes.h"
#include "web/address.h"

namespace kjudge {

// What the pages of a site are made from.

// One evaluation without its times and log: these are read again for its own page.
struct EvaluationSummary {
  int number = 1;    // of its submission's
  Evaluation facts;  // shapes without rounds; no log
  Score score;       // of all shapes
  // One for each dtype of the challenge, if it has several that this arch runs.
  std::vector<std::pair<std::string, Score>> dtype_scores;
  std::string kernels;  // the same for the same kernels; empty where there is no bundle
  std::vector<std::string> profiled;  // shapes
  std::vector<std::string> invalid;   // the reasons why it does not count; none: it does
};

struct SubmissionSummary {
  StoredSubmission stored;
  SubmissionNotes notes;
  bool published = false;                      // its code is for everybody to see
  std::vector<EvaluationSummary> evaluations;  // ascending by number
  // The evaluation that comes next, if one does.
  std::optional<RunningEvaluation> running;
  int next_number() const { return stored.evaluations.empty() ? 1 : stored.evaluations.back() + 1; }
};

struct Site {
  std::vector<Challenge> challenges;           // those whose folders are known
  std::vector<SubmissionSummary> submissions;  // ascending by number
  Records<Bar> bars;                           // standing ones
  std::vector<PlayedOff> play_offs;
  // That of a name in this version, or in this very state; null: its folder is not known.
  const Challenge* challenge(const std::string& name, int version) const;
  const Challenge* challenge_of(const Evaluation& evaluation) const;
};

using ReportLine = std::function<void(const std::string&)>;

// Reads a site from a results directory, as often as one asks: what has not changed since is not
// read again. What cannot be read is left out, with a line to `report`.
class SiteReader {
 public:
  SiteReader(const ResultsDirectory& results, std::vector<Challenge> challenges, ReportLine report);
  // Whether read() would find anything that it did not the last time, but for profiles.
  bool look();
  Site read();
  // The same of one submission alone, without what others have to do with it.
  Site read_only(int submission);
  // How many evaluations read() would read for the first time.
  std::size_t unread();
  // What the last read() was made from.
  const std::vector<IndexedSubmission>& indexed() const { return seen_; }

 private:
  struct Known {
    FileStamp result, folder;
    EvaluationSummary summary;
  };
  const EvaluationSummary* summary_of(const StoredSubmission& submission,
                                      const IndexedEvaluation& evaluation);
  SubmissionSummary summary_of(const IndexedSubmission& indexed,
                               const Records<Invalidation>& invalidations);
  Records<Invalidation> invalidations() const;
  std::vector<std::vector<int>> record_numbers() const;  // of each kind
  void find_places(Site& site) const;

  const ResultsDirectory& results_;
  std::vector<Challenge> challenges_;
  ReportLine report_;
  StoreIndex index_;
  std::vector<IndexedSubmission> seen_;
  std::vector<std::vector<int>> records_;
  std::map<EvaluationKey, Known> known_;
};
Site read_site(const ResultsDirectory& results, std::vector<Challenge> challenges,
               const ReportLine& report);
// Faults as result_from_json.
Evaluation read_evaluation(const StoredSubmission& submission, int number);
// profile.json and profile-*.json beside the result; by shape, the last of each.
std::vector<Profile> read_profiles(const StoredSubmission& submission, int number,
                                   const ReportLine& report);

// Evaluations that compare: of the same state of a challenge, arch, kind of device and method;
// `dtype` empty is all of its shapes.
struct Variant {
  std::string challenge;
  int version = 1;
  std::string sha256, arch, device_kind;
  int method = kMethod;
  std::string dtype;
  auto operator<=>(const Variant&) const = default;
};
// Of all the shapes of an evaluation.
Variant variant_of(const Evaluation& facts);
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
  std::optional<double> target_ns;     // the challenge's
  std::vector<LeaderboardRow> others;  // runs without a score: the newest evaluation of each
  std::vector<HistoryPoint> history;   // ascending by time
};
// As `kjudge rank` has it: of the newest valid evaluation of each submission. The variant of the
// newest evaluation of all comes first. Points into `site`.
std::vector<Leaderboard> make_leaderboards(const Site& site);

// Seconds since 1970 of "2025-01-31T12:00:00Z"; nullopt for what is no such time.
std::optional<double> seconds_of(const std::string& time);

}  // namespace kjudge
