// SPDX-License-Identifier: Apache-2.0
#include "store/check_store.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bundle/bundle.h"
#include "error.h"
#include "file.h"
#include "score/result_json.h"
#include "sha256.h"
#include "store/check_relations.h"
#include "store/claim.h"
#include "store/identity.h"
#include "store/judgements.h"
#include "store/kernels_hash.h"
#include "store/numbered_folders.h"
#include "store/pruning.h"
#include "store/records.h"
#include "store/rejudgement.h"
#include "store/results.h"
#include "store/running.h"
#include "store/score_index.h"
#include "store/submission_files.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;
using FindingKind = StoreFinding::Kind;

class Checker {
 public:
  Checker(const fs::path& results, const StoreCheckOptions& options)
      : results_(results), options_(options) {}

  StoreCheck run() {
    const fs::path submissions = results_.path() / "submissions";
    names(results_.path(),
          {"submissions", "blobs", "runs", "tokens", "challenges", "bars", "invalidations",
           "playoffs", "rejudgements", "store.json", "scores.index",
           "index.json"},  // which an older kjudge left
          false);
    names(submissions, {}, true);
    for (const int number : numbers_in(submissions)) {
      options_.tick();
      ++check_.submissions;
      const fs::path folder = submissions / std::to_string(number);
      part(folder, [&] { submission(folder, number); });
    }
    part(results_.path() / "tokens", [&] { tokens(); });
    part(results_.path() / "runs", [&] { runs(); });
    part(results_.path() / "blobs", [&] { blobs(); });
    part(results_.path() / "challenges", [&] { challenges(); });
    part(record_folder(results_.path(), kBarRecord), [&] { records(kBarRecord, bar_table()); });
    part(record_folder(results_.path(), kInvalidationRecord),
         [&] { records(kInvalidationRecord, invalidation_table()); });
    part(record_folder(results_.path(), kPlayOffRecord), [&] { play_offs(); });
    part(record_folder(results_.path(), kRejudgementRecord), [&] { rejudgements(); });
    part(results_.path(), [&] { scores(); });
    return std::move(check_);
  }

 private:
  void damage(const fs::path& path, const std::string& what, const std::string& advice) {
    check_.findings.push_back({FindingKind::damage, path, what, advice});
  }
  void left_over(const fs::path& path, const std::string& what, const std::string& advice) {
    check_.findings.push_back({FindingKind::left_over, path, what, advice});
  }

  // Of `path`. What cannot even be looked at, as a disk fails, ends its part only.
  template <class Body>
  void part(const fs::path& path, const Body& body) {
    const auto tell = [&](const fs::path& unseen, const std::string& why) {
      damage(unseen, why + "; what is beside it was not looked at",
             "make that it can be read, or copy it from a backup; then look again");
    };
    try {
      body();
    } catch (const fs::filesystem_error& error) {
      tell(error.path1(), error.code().message());
    } catch (const Error& error) {
      if (error.fault() != Fault::host) throw;
      tell(path, reason(error, path));
    }
  }

  // As numbered(); what cannot be looked into is told by names().
  static std::vector<int> numbers_in(const fs::path& folder) {
    try {
      return numbered(folder);
    } catch (const Error&) {
      return {};
    }
  }

  // What lies in a folder beside what belongs there.
  void names(const fs::path& folder, const std::vector<std::string>& known, bool numbers) {
    const auto found = numbers ? numbers_in(folder) : std::vector<int>();
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      const bool is_number = std::any_of(
          found.begin(), found.end(), [&](int number) { return name == std::to_string(number); });
      if (is_number || std::find(known.begin(), known.end(), name) != known.end()) continue;
      if (is_unfinished(at->path())) {
        left_over(at->path(), "unfinished: a process writes it, or was killed while it did",
                  "nothing; it goes when a judge begins and its process has ended");
      } else if (!name.starts_with('.')) {
        damage(at->path(), "kjudge makes no such name; it is not looked at",
               "move it elsewhere, if you know it");
      }
    }
    if (error && error != std::errc::no_such_file_or_directory) {
      damage(folder, cat(error.message(), "; nothing in it is looked at"),
             "put a folder that can be read in its place, from a backup");
    }
  }

  // A file that may be absent, and says what it should: `read` throws what is wrong with it.
  template <class Read>
  void file(const fs::path& path, const std::string& follows, const std::string& advice,
            const Read& read) {
    if (!fs::exists(path)) return;
    try {
      read(path);
    } catch (const Error& error) {
      if (!fs::exists(path)) return;  // a judge at work removed it just now
      damage(path, cat(reason(error, path), follows), advice);
    }
  }

  void submission(const fs::path& folder, int number) {
    names(folder, {"submission.json", "files", "claims", "evaluations"}, false);
    std::optional<StoredSubmission> stored;
    try {
      stored = results_.submission(number);
    } catch (const Error& error) {
      damage(folder / "submission.json",
             cat(reason(error, folder / "submission.json"),
                 "; the submission is not judged, shown or ranked"),
             "copy the file from a backup, or write it anew by kjudge-store(5)");
    }
    part(folder / "files", [&] { files(folder, stored); });
    part(folder / "claims", [&] { claims(folder); });
    names(folder / "evaluations", {}, true);
    int expected = 1;
    for (const int one : numbers_in(folder / "evaluations")) {
      ++check_.evaluations;
      if (one != expected) {
        damage(folder / "evaluations" / std::to_string(expected),
               cat("is missing, though there is ", one, "; a verdict was removed"),
               "copy the folder from a backup");
      }
      expected = one + 1;
      const fs::path judged = folder / "evaluations" / std::to_string(one);
      part(judged, [&] { evaluation(judged, stored); });
    }
  }

  void files(const fs::path& folder, const std::optional<StoredSubmission>& stored) {
    const fs::path path = folder / "files";
    if (stored && !stored->identity.keep && !stored->evaluations.empty() && !fs::exists(path)) {
      return;  // as whoever handed it in asked
    }
    const std::string advice = "copy the folder from a backup; what was judged stays as it is";
    try {
      const std::string sha256 = read_submission_files(path).sha256;
      if (stored && sha256 != stored->identity.sha256) {
        damage(path,
               "are not what was handed in: their hash is not that of submission.json; judged "
               "again, it would be another submission",
               advice);
      }
    } catch (const Error& error) {
      damage(path, error.what(), advice);
    }
  }

  void claims(const fs::path& folder) {
    const fs::path path = folder / "claims";
    names(path, {}, true);
    const auto attempts = numbers_in(path);
    for (const int attempt : attempts) {
      const fs::path claim = path / std::to_string(attempt);
      names(claim, {"lease.json", "running.json", "work", "dropped"}, false);
      file(claim / "running.json", "; nobody can show how far it is",
           "nothing; it goes with its judge",
           [](const fs::path& file) { read_record(running_table(), file); });
      const bool open = fs::is_directory(claim / "work");
      try {
        const Lease lease = read_lease(claim);
        if (open && has_ended(lease.holder)) {
          left_over(claim / "work",
                    cat("process ", lease.holder.pid, " of ", lease.holder.host,
                        " was killed while it judged this"),
                    "nothing; the next judge takes over");
        }
      } catch (const Error& error) {
        damage(
            claim / "lease.json",
            cat(reason(error, claim / "lease.json"),
                open
                    ? "; nobody can tell whether the submission is being judged, so it waits until "
                      "this is a day old"
                    : ""),
            open ? cat("make sure that nobody judges it, then rename ", (claim / "work").string(),
                       " to dropped")
                 : "nothing; the claim is over");
      }
      if (open && attempt != attempts.back()) {
        damage(claim / "work", "two claims are open at the same time",
               cat("make sure that nobody judges it, then rename ", (claim / "work").string(),
                   " to dropped"));
      }
      if (fs::exists(claim / "dropped")) {
        left_over(claim / "dropped", "of a judge that was taken over from, or gave up",
                  cat("remove ", (claim / "dropped").string()));
      }
    }
  }

  void evaluation(const fs::path& folder, const std::optional<StoredSubmission>& stored) {
    std::vector<std::string> known = {"result.json",    "log.txt",     "bundle.kjb",
                                      "kernels.sha256", "pruned.json", "secret.json"};
    for (const fs::path& profile : profile_files(folder)) known.push_back(profile.filename());
    names(folder, known, false);
    const fs::path file = folder / "result.json";
    const std::string advice =
        cat("copy it from a backup; or, to have it judged again, rename ", folder.string(), " to ",
            (folder.parent_path() / (".damaged-" + folder.filename().string())).string());
    std::optional<Evaluation> evaluation;
    try {
      evaluation = result_from_json(read_file(file), file);
    } catch (const Error& error) {
      damage(file, cat(reason(error, file), "; the submission is not ranked, and not judged again"),
             advice);
      return;
    }
    if (stored && evaluation->verdict != Verdict::judge_error &&
        evaluation->submission_sha256 != stored->identity.sha256) {
      damage(file, "is of other files than were handed in, by their hash", advice);
    }
    const fs::path log = folder / "log.txt";
    if (!fs::exists(log)) {
      damage(log, "is missing; result.json has it too", cat("touch ", log.string()));
    }
    this->file(log, "", "nothing depends on it; copy it from a backup", [&](const fs::path& path) {
      // In JSON what is no UTF-8 is replaced.
      if (print_flat_json(Json{read_file(path)}) != print_flat_json(Json{evaluation->log})) {
        throw Error(Fault::malformed, "is not the log that result.json has");
      }
    });
    challenges_[{evaluation->challenge, evaluation->challenge_version}].insert(
        evaluation->challenge_sha256);
    beside(folder, *evaluation);
    const bool kept = !stored || stored->identity.keep;
    if (kept || fs::exists(folder / "bundle.kjb")) bundle(folder / "bundle.kjb", *evaluation);
  }

  // nullopt: there is no recording, or bundle() tells what is wrong with it.
  static std::optional<std::string> kernels_in(const fs::path& recording) {
    try {
      return kernels_sha256(BundleReader(recording).bundle());
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // Files that an evaluation may have, and older ones have not.
  void beside(const fs::path& folder, const Evaluation& evaluation) {
    file(folder / "secret.json", "; its hidden inputs cannot be made again",
         "copy it from a backup; the verdict does not depend on it", [&](const fs::path&) {
           if (read_replay_secret(folder).evaluation != evaluation.id) {
             throw Error(Fault::malformed, "is of another evaluation, by its UUID");
           }
         });
    file(folder / "kernels.sha256", "; nobody can tell who launches the same",
         cat("remove it: then it is computed from ", (folder / "bundle.kjb").string()),
         [&](const fs::path& path) {
           const std::string text = read_file(path, 65);
           if (text.size() != 65 || text.find_first_not_of("0123456789abcdef") != 64) {
             throw Error(Fault::malformed, "is no SHA-256");
           }
           const auto launched = kernels_in(folder / "bundle.kjb");
           if (launched && text.substr(0, 64) != *launched) {
             throw Error(Fault::malformed, "is not of what the recording launches");
           }
         });
    for (const fs::path& profile : profile_files(folder)) {
      file(profile, "; it is not shown", "copy it from a backup, or remove it",
           options_.read_profile);
    }
  }

  void bundle(const fs::path& path, const Evaluation& evaluation) {
    const std::string advice = "copy it from a backup; the verdict does not depend on it";
    const bool pruned = is_pruned(path.parent_path(), evaluation);
    if (pruned && fs::exists(path)) {
      left_over(path, "was to be pruned; a judge was killed before it did",
                "nothing; the next one that prunes removes it");
    }
    if (!fs::exists(path)) {
      if (pruned) return;
      if (evaluation.bundle_sha256 || evaluation.verdict == Verdict::accepted) {
        damage(path, "is missing, though this evaluation had a recording", advice);
      }
      return;
    }
    try {
      const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      if (!fd.valid()) throw_errno(path.string());
      // Results that have no hash of it are older; a recording has hashes of its own.
      if (!evaluation.bundle_sha256) BundleReader(fd.get(), path.string());
      if (evaluation.bundle_sha256 &&
          sha256_of_file(fd.get(), path.string()) != *evaluation.bundle_sha256) {
        damage(path, "is not the recording that was measured: its hash is not that of result.json",
               advice);
      }
    } catch (const Error& error) {
      damage(path, cat("cannot be read: ", reason(error, path)), advice);
    }
  }

  bool is_pruned(const fs::path& folder, const Evaluation& evaluation) {
    const fs::path mark = folder / "pruned.json";
    const std::string advice =
        cat("remove it; what is missing then, ", (folder / "bundle.kjb").string(), ", is told");
    try {
      const auto pruned = read_pruned(folder);
      if (!pruned) return false;
      if (evaluation.bundle_sha256 && pruned->sha256 != *evaluation.bundle_sha256) {
        damage(mark, "is of another recording than was measured, by its hash", advice);
      }
    } catch (const Error& error) {
      damage(mark, reason(error, mark), advice);
    }
    return true;
  }

  void tokens() {
    const fs::path folder = results_.path() / "tokens";
    names(folder, file_names(folder), false);
    for (const std::string& name : file_names(folder)) {
      file(folder / name, "; the token in it is good for nothing",
           "copy it from a backup, or remove it and give whoever had it another token",
           [&](const fs::path& path) {
             const Token token = read_token(path);
             if (token_file(results_.path(), token.name) == path) return;
             throw Error(Fault::malformed,
                         cat("says it is of ", token.name, ", which would have another name"));
           });
    }
  }

  void runs() {
    const fs::path folder = results_.path() / "runs";
    names(folder, file_names(folder), false);
    for (const std::string& name : file_names(folder)) {
      const std::string advice =
          "copy it from a backup, or remove it, then: kjudge fsck --restore-runs";
      try {
        const Run run = read_run(folder / name);
        if (folder / name != run_file(results_.path(), run.name)) {
          damage(folder / name, cat("says it is of ", run.name, ", which would have another name"),
                 advice);
        }
      } catch (const Error& error) {
        damage(folder / name, cat(reason(error, folder / name), "; nobody can hand in for the run"),
               advice);
      }
    }
  }

  // Whole files of tokens/ and runs/.
  static std::vector<std::string> file_names(const fs::path& folder) {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() == ".json") found.push_back(at->path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  void blobs() {
    names(results_.path() / "blobs", {"sha256"}, false);
    std::error_code error;
    fs::recursive_directory_iterator at(results_.path() / "blobs" / "sha256", error), end;
    for (; !error && at != end; at.increment(error)) {
      const fs::path& path = at->path();
      if (at->is_directory()) continue;
      options_.tick();
      file(path, "", cat("remove ", path.string(), "; what was to be one with it is told above"),
           [&](const fs::path&) { blob(path); });
    }
  }

  void blob(const fs::path& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) throw_errno(path.string());
    const std::string sha256 = path.parent_path().filename().string() + path.filename().string();
    if (sha256_of_file(fd.get(), path.string()) != sha256) {
      damage(path, "its content is not that of its hash, and so in every file that is a link to it",
             "mend those, told above, and remove this name");
    } else if (std::error_code gone; fs::hard_link_count(path, gone) == 1) {
      left_over(path, "no file is a link to it", cat("remove ", path.string()));
    }
  }

  void challenges() {
    const fs::path folder = results_.path() / "challenges";
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      names(at->path(), {}, true);
      for (const int version : numbers_in(at->path())) {
        const fs::path kept = at->path() / std::to_string(version);
        try {
          const Challenge challenge = read_challenge(kept);
          const auto judged = challenges_.find({challenge.name, challenge.version});
          if (judged != challenges_.end() && !judged->second.contains(challenge.sha256)) {
            throw Error(Fault::package, "is not what results of it were judged by, by its hash");
          }
        } catch (const Error& bad) {
          damage(kept, cat(reason(bad, kept), "; results of it have no dtypes and no target"),
                 "copy it from a backup, or remove it: the next judge keeps it again");
        }
      }
    }
  }

  // What organizers recorded: RESULTS/bars/3/bar.json and its like. `body` checks one.
  template <class Body>
  void each_record(const std::string& kind, const std::vector<std::string>& more,
                   const Body& body) {
    const fs::path folder = record_folder(results_.path(), kind);
    names(folder, {}, true);
    std::vector<std::string> known = more;
    known.push_back(kind + ".json");
    for (const int number : numbers_in(folder)) {
      names(folder / std::to_string(number), known, false);
      const fs::path file = record_file(results_.path(), kind, number);
      try {
        body(file);
      } catch (const Error& error) {
        damage(file, cat(reason(error, file), "; it is as if it had not been said"),
               "copy it from a backup, or say it again");
      }
    }
  }

  template <class T>
  void records(const std::string& kind, const FieldTable<T>& table) {
    each_record(kind, {}, [&](const fs::path& file) { read_record(table, file); });
  }

  void play_offs() {
    each_record(kPlayOffRecord, {"results"}, [&](const fs::path& file) {
      const PlayOff play_off = read_record(play_off_table(), file);
      for (std::size_t i = 1; i <= play_off.others.size(); ++i) {
        const fs::path result = file.parent_path() / "results" / cat(i, ".json");
        result_from_json(read_file(result), result);
      }
    });
  }

  void rejudgements() {
    each_record(kRejudgementRecord, {"evaluations", "applied.json", "dropped.json"},
                [&](const fs::path& file) {
                  read_record(rejudgement_table(), file);
                  for (const char* end : {"applied.json", "dropped.json"}) {
                    const fs::path path = file.parent_path() / end;
                    if (fs::exists(path)) read_record(rejudgement_end_table(), path);
                  }
                  const fs::path judged = file.parent_path() / "evaluations";
                  names(judged, {}, true);
                  for (const int number : numbers_in(judged)) rejudged(judged, number);
                });
  }

  // As in the submission's own folder.
  void rejudged(const fs::path& judged, int number) {
    std::optional<StoredSubmission> stored;
    try {
      stored = results_.submission(number);
    } catch (const Error&) {  // told above
    }
    evaluation(judged / std::to_string(number), stored);
  }

  void scores() {
    const auto ignore = [](const Error&) {};  // found above
    const fs::path path = results_.path() / "scores.index";
    ScoreIndex anew(results_, ignore, ScoreIndex::Begin::from_nothing);
    const ScoreIndex kept(results_, ignore);
    if (kept.from_file() == ScoreIndex::FromFile::damaged) {
      damage(path, "is not what was written",
             fs::is_directory(path) ? "remove that folder; nothing else is needed"
                                    : "nothing; it was written anew");
    } else if (kept.from_file() == ScoreIndex::FromFile::used && !kept.agrees_with(anew)) {
      damage(path, "did not say what the files say", "nothing; it was written anew");
    }
    check_relations(results_, anew,
                    [&](StoreFinding found) { check_.findings.push_back(std::move(found)); });
    anew.save();
  }

  // Without the path, which a finding has anyway.
  static std::string reason(const Error& error, const fs::path& path) {
    const std::string text = error.what(), prefix = path.string() + ": ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }

  const ResultsDirectory results_;
  const StoreCheckOptions& options_;
  // Hashes of each version of a challenge that evaluations name.
  std::map<std::pair<std::string, int>, std::set<std::string>> challenges_;
  StoreCheck check_;
};

}  // namespace

StoreCheck check_store(const fs::path& results, const StoreCheckOptions& options) {
  return Checker(results, options).run();
}

}  // namespace kjudge
