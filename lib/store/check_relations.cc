// SPDX-License-Identifier: Apache-2.0
#include "store/check_relations.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "error.h"
#include "file_names.h"
#include "store/challenges.h"
#include "store/claim.h"
#include "store/identity.h"
#include "store/judgements.h"
#include "store/numbered_folders.h"
#include "store/rejudgement.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

class Relations {
 public:
  Relations(const ResultsDirectory& results, const ScoreIndex& index,
            const std::function<void(StoreFinding)>& found)
      : results_(results), index_(index), found_(found) {}

  void check() {
    version();
    submissions();
    records();
    ids();
    runs();
    tokens();
    challenges();
  }

 private:
  void damage(const fs::path& path, const std::string& what, const std::string& advice) {
    found_({StoreFinding::Kind::damage, path, what, advice});
  }

  fs::path folder_of(int number) const {
    return results_.path() / "submissions" / std::to_string(number);
  }

  // Of version 1 of the layout there is none, nor what its submissions lack.
  static bool is_of_version_1(const ScoredSubmission& one) {
    return one.identity.challenge.empty();
  }

  void version() {
    const auto& all = index_.submissions();
    if (is_there(results_.path() / "store.json") ||
        std::all_of(all.begin(), all.end(), is_of_version_1)) {
      return;
    }
    damage(
        results_.path() / "store.json",
        "is missing, though submissions name their challenges, which version 1 of the layout did "
        "not",
        "copy it from a backup, or write it anew by kjudge-store(5); the next judge does so too");
  }

  // Numbers are given without a gap, and none twice.
  void submissions() {
    const auto present = numbered(results_.path() / "submissions");
    std::map<int, std::string> knows;  // who does, of the number or one after it
    const auto note = [&](int number, const std::string& who) { knows.try_emplace(number, who); };
    for (const int number : present) {
      knows[number - 1] = cat("there is ", number);
      note(number, "");
    }
    const auto named = [&](const auto& one, const std::string& who) {
      note(one.submission, cat(who, " names it, or one after it"));
      named_[one.submission].try_emplace(one.evaluation, cat(who, " names it"));
    };
    each(kRejudgementRecord, rejudgement_table(), [&](const Rejudgement& set, const auto& who) {
      for (const Rejudged& one : set.evaluations) named(one, who);
    });
    each(kPlayOffRecord, play_off_table(), [&](const PlayOff& play_off, const auto& who) {
      named(play_off.best, who);
      for (const auto* members : {&play_off.others, &play_off.absent}) {
        for (const PlayOffMember& one : *members) named(one, who);
      }
    });
    note(index_.last_number(), "scores.index knew it, or one after it");
    int expected = 1;
    for (const int number : present) {
      missing(expected, number, knows);
      evaluations(number);
      expected = number + 1;
    }
    missing(expected, knows.rbegin()->first + 1, knows);
  }

  // Their numbers are given without a gap too.
  void records() {
    for (const auto& [kind, last] : index_.last_records()) {
      const fs::path folder = record_folder(results_.path(), kind);
      int expected = 1;
      const auto before = [&](int end, const std::string& who) {
        if (expected >= end || is_there(folder / cat(".damaged-", expected))) return;
        const int more = end - expected - 1;
        damage(folder / std::to_string(expected),
               cat("is missing, ", more > 0 ? cat("with the ", more, " after it, ") : "", "though ",
                   who, "; what it said does not hold any more"),
               cat("copy the folder from a backup; or say it again, and make a folder ",
                   (folder / cat(".damaged-", expected)).string()));
      };
      for (const int number : numbered_or_none(folder)) {
        before(number, cat("there is ", number));
        expected = number + 1;
      }
      before(last + 1, "scores.index knew it, or one after it");
    }
  }

  // What cannot be looked at is told by check_store().
  static bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error) || error;
  }

  // Those from `first` to before `end`.
  void missing(int first, int end, const std::map<int, std::string>& knows) {
    constexpr int kMostTold = 100;
    if (end - first > kMostTold) {
      // A folder that somebody put there may have any number.
      damage(
          folder_of(first),
          cat("is missing, with the ", end - first - 1, " after it, though ",
              knows.lower_bound(first)->second, "; what was handed in is lost, and its verdicts"),
          "copy the folders from a backup; or, if kjudge did not make the one of so high a "
          "number, move that one elsewhere and remove scores.index");
      return;
    }
    for (int number = first; number < end; ++number) {
      damage(folder_of(number),
             cat("is missing, though ", knows.lower_bound(number)->second,
                 "; what was handed in is lost, and its verdicts"),
             "copy the folder from a backup; no other submission gets its number");
    }
  }

  // Those that are lost without a gap, which check_store() tells. One that was renamed as fsck
  // advises counts.
  void evaluations(int number) {
    const fs::path all = folder_of(number) / "evaluations";
    const auto numbers = numbered_or_none(all);
    const int last = numbers.empty() ? 0 : numbers.back();
    for (const auto& [evaluation, who] : known_evaluations(number)) {
      if (evaluation <= last || is_there(all / cat(".damaged-", evaluation))) continue;
      damage(all / std::to_string(evaluation),
             cat("is missing, though ", who,
                 "; a verdict was removed, and the submission is judged again"),
             "copy the folder from a backup before the next judge");
    }
  }

  // And who knows it: the claim of the judge that stored it, a record, or the index.
  std::map<int, std::string> known_evaluations(int number) const {
    std::map<int, std::string> found;
    const fs::path claims = folder_of(number) / "claims";
    for (const int attempt : numbered_or_none(claims)) {
      try {
        const int stored = read_lease(claims / std::to_string(attempt)).evaluation;
        if (stored != 0) found.try_emplace(stored, cat("claim ", attempt, " stored it"));
      } catch (const Error&) {  // told by check_store()
      }
    }
    if (const auto named = named_.find(number); named != named_.end()) {
      found.insert(named->second.begin(), named->second.end());
    }
    const ScoredSubmission* scored = index_.find(number);
    if (scored != nullptr && scored->last_evaluation != 0) {
      found.try_emplace(scored->last_evaluation, "scores.index knew it");
    }
    return found;
  }

  static std::vector<int> numbered_or_none(const fs::path& folder) {
    try {
      return numbered(folder);
    } catch (const Error&) {  // told by check_store()
      return {};
    }
  }

  template <class T, class Body>
  void each(const std::string& kind, const FieldTable<T>& table, const Body& body) {
    for (const int number : numbered_or_none(record_folder(results_.path(), kind))) {
      try {
        body(read_record(table, record_file(results_.path(), kind, number)),
             cat(kind, " ", number));
      } catch (const Error&) {  // told by check_store()
      }
    }
  }

  void ids() {
    std::map<std::string, int> first;
    for (const ScoredSubmission& one : index_.submissions()) {
      const auto [at, is_new] = first.try_emplace(one.identity.id, one.number);
      if (is_new) continue;
      damage(folder_of(one.number) / "submission.json",
             cat("has the id of submission ", at->second,
                 "; whoever asks for it by its id gets the other one"),
             "copy it from a backup; if the folder is a copy, move it elsewhere");
    }
  }

  // A run is whoever's token was first, and others cannot hand in for it.
  void runs() {
    std::map<fs::path, std::vector<const ScoredSubmission*>> by_file;
    for (const ScoredSubmission& one : index_.submissions()) {
      if (is_of_version_1(one)) continue;
      by_file[run_file(results_.path(), one.identity.run)].push_back(&one);
    }
    for (const auto& [file, submissions] : by_file) {
      if (!is_there(file)) {
        damage(
            file,
            cat("is missing, though submission ", submissions.front()->number, " is of its run, ",
                submissions.front()->identity.run, "; whoever hands in first gets the run"),
            "copy it from a backup, or: kjudge fsck --restore-runs");
        continue;
      }
      try {
        owners(file, read_run(file), submissions);
      } catch (const Error&) {  // told by check_store()
      }
    }
  }

  void owners(const fs::path& file, const Run& run,
              const std::vector<const ScoredSubmission*>& submissions) {
    const auto is_others = [&](const ScoredSubmission* one) {
      const std::string& owner = one->identity.owner;  // the organizer may hand in for any
      return !owner.empty() && folded_name(owner) != folded_name(run.owner);
    };
    const auto named = [](const std::string& owner) {
      return owner.empty() ? std::string("the organizer") : owner;
    };
    if (std::all_of(submissions.begin(), submissions.end(), is_others)) {
      damage(
          file,
          cat("says that the run ", run.name, " is of ", named(run.owner), ", but submission ",
              submissions.front()->number, " is of ", named(submissions.front()->identity.owner)),
          "copy it from a backup, or remove it, then: kjudge fsck --restore-runs");
      return;
    }
    for (const ScoredSubmission* one : submissions) {
      if (!is_others(one)) continue;
      damage(folder_of(one->number) / "submission.json",
             cat("is of ", one->identity.owner, ", but its run ", run.name, " is of ",
                 named(run.owner), ", by ", file.string()),
             "copy the one that was changed from a backup");
    }
  }

  void tokens() {
    std::set<std::string> owners;
    for (const ScoredSubmission& one : index_.submissions()) owners.insert(one.identity.owner);
    std::error_code error;
    for (fs::directory_iterator at(results_.path() / "runs", error), end; !error && at != end;
         at.increment(error)) {
      if (at->path().extension() != ".json") continue;
      try {
        owners.insert(read_run(at->path()).owner);
      } catch (const Error&) {  // told by check_store()
      }
    }
    std::set<fs::path> told;
    for (const std::string& owner : owners) {
      if (owner.empty()) continue;
      const fs::path file = token_file(results_.path(), owner);
      if (is_there(file) || !told.insert(file).second) continue;
      damage(file, cat("is missing, though ", owner, " handed in; the token is good for nothing"),
             cat("copy it from a backup, or give ", owner, " another: kjudge token add"));
    }
  }

  void challenges() {
    std::map<fs::path, int> wanted;  // and a submission whose result is of it
    for (const ScoredSubmission& one : index_.submissions()) {
      if (is_of_version_1(one)) continue;
      for (const ScoredEvaluation& evaluation : one.evaluations) {
        const Terms& terms = *evaluation.terms;
        wanted.try_emplace(
            kept_challenge_folder(results_, terms.challenge, terms.challenge_version), one.number);
      }
    }
    for (const auto& [kept, submission] : wanted) {
      if (is_there(kept)) continue;
      damage(kept,
             cat("is missing, though submission ", submission,
                 " was judged with it; results of it have no dtypes and no target"),
             "copy it from a backup, or judge with that version once, which keeps it again");
    }
  }

  const ResultsDirectory& results_;
  const ScoreIndex& index_;
  const std::function<void(StoreFinding)>& found_;
  std::map<int, std::map<int, std::string>> named_;  // evaluations by submission, and by whom
};

}  // namespace

void check_relations(const ResultsDirectory& results, const ScoreIndex& index,
                     const std::function<void(StoreFinding)>& found) {
  Relations(results, index, found).check();
}

}  // namespace kjudge
