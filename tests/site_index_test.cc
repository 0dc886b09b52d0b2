// SPDX-License-Identifier: Apache-2.0
// That pages are the same whatever the index knew.
#include <doctest/doctest.h>

#include <map>

#include "evaluations.h"
#include "file.h"
#include "store/claim.h"
#include "store/judgements.h"
#include "web/publisher.h"
#include "web/write_site.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

// A contest on a GPU with all that pages show: several dtypes, runs and verdicts, kernels that are
// the same, what was judged twice, what does not count, what was not to be kept, what waits.
struct Contest {
  TempDir folder;
  ResultsDirectory results = ResultsDirectory::make(folder.path() / "results");
  Challenge challenge =
      read_challenge(fs::path(KJUDGE_TEST_FOLDER).parent_path() / "packages" / "softmax");
  std::vector<std::string> said;
  int judged = 0;

  Contest() { challenge.publish = PublishCode::licensed; }

  int hand_in(const std::string& run, bool keep = true) {
    const fs::path file = folder.path() / (run + ".py");
    write_file_atomically(file,
                          cat("# kjudge_license: MIT\n# kjudge_label: by ", run, " ", ++judged));
    ResultsDirectory::HandIn hand_in;
    hand_in.from = file;
    hand_in.run = run;
    hand_in.challenge = "softmax";
    hand_in.limit_bytes = 1 << 20;
    hand_in.keep = keep;
    return results.add(hand_in, {});
  }

  void judge(int number, double ratio, Verdict verdict = Verdict::accepted) {
    StoredSubmission submission = results.submission(number);
    auto claim = Claim::take(submission, std::chrono::seconds(1000));
    REQUIRE(claim);
    const auto shape = [&](const char* name, double times) {
      return evaluations::shape(name, [=](int round, int) { return times * ratio + 0.1 * round; });
    };
    Evaluation evaluation = evaluations::accepted(
        {shape("4096x1024-float32", 1), shape("16384x4096-bfloat16", 2 - 0.1 * number)});
    evaluation.id = cat("evaluation-", ++judged);
    evaluation.started = cat("2025-01-", 10 + judged, "T12:00:00Z");
    evaluation.arch = "sm_90";
    evaluation.device = "NVIDIA H200 GPU-1";
    evaluation.challenge_sha256 = challenge.sha256;
    evaluation.verdict = evaluation.shapes[1].verdict = verdict;
    evaluation.message = "a message";
    if (verdict == Verdict::build_error) evaluation.shapes.clear();
    write_file_atomically(claim->folder() / "kernels.sha256",
                          std::string(64, number % 2 == 0 ? 'a' : 'b') + "\n");
    claim->commit(submission, evaluation);
    if (verdict != Verdict::judge_error && has_files_to_remove(submission)) {
      remove_files(results, submission);
    }
  }

  ResultsDirectory::Report report() {
    return [this](const Error& error) { said.push_back(error.what()); };
  }

  std::map<std::string, std::string> write(const std::string& name) {
    const fs::path output = folder.path() / name;
    write_site(read_site(results, {challenge}, report()), output, report());
    return contents(output);
  }

  static std::map<std::string, std::string> contents(const fs::path& output) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(output)) {
      if (!entry.is_regular_file() || entry.path().filename().string().starts_with('.')) continue;
      files[entry.path().lexically_relative(output).string()] = read_file(entry.path());
    }
    return files;
  }

  void forget_index() const { fs::remove(results.path() / "scores.index"); }
};

}  // namespace

TEST_CASE("a profile that cannot be read for a moment is read later") {
  Contest contest;
  contest.judge(contest.hand_in("ada"), 2);
  const fs::path evaluation = contest.results.path() / "submissions/1/evaluations/1";
  const fs::path elsewhere = contest.folder.path() / "profile.json";
  fs::create_symlink(elsewhere, evaluation / "profile.json");  // whose folder stays as it is
  SiteReader reader(contest.results, {contest.challenge}, contest.report());
  CHECK(reader.read().submissions.at(0).evaluations.at(0).profiled.empty());
  CHECK(contest.said.size() == 1);
  fs::copy_file(fs::path(KJUDGE_TEST_FOLDER) / "golden/profile-v1/profile.json", elsewhere);
  CHECK(reader.read().submissions.at(0).evaluations.at(0).profiled.size() == 1);
  CHECK(contest.said.size() == 1);
}

TEST_CASE("pages are the same from the index, from a publisher's, and from scratch") {
  Contest contest;
  const int ada = contest.hand_in("ada"), ben = contest.hand_in("ben"),
            eve = contest.hand_in("eve", false);
  contest.judge(ada, 2);
  contest.judge(ben, 3, Verdict::wrong_result);
  const fs::path output = contest.folder.path() / "published";
  {
    Publisher publisher(contest.results, output, {contest.challenge},
                        [](const std::string& line) { FAIL(line); });
    const auto judge = [&](int number, double ratio, Verdict verdict = Verdict::accepted) {
      contest.judge(number, ratio, verdict);
      publisher.judged(number);
    };
    judge(eve, 9);
    judge(contest.hand_in("ben"), 2.5);
    judge(contest.hand_in("dan"), 4, Verdict::build_error);
    judge(ada, 2.2);
    const int late = contest.hand_in("ada");
    judge(late, 2, Verdict::judge_error);
    Invalidation invalidation;
    invalidation.selection.submission = ben;
    invalidation.selection.to = "2026-01-01T00:00:00Z";
    invalidation.reason = "a reason";
    invalidation.made = "2026-01-01T00:00:00Z";
    add_record(contest.results, kInvalidationRecord,
               Json{invalidation_table().write(invalidation)});
    judge(ben, 1.5);
    judge(contest.hand_in("zoe"), 3);
  }
  contest.write("first");  // which leaves an index of all of it
  const auto from_index = contest.write("from_index");
  contest.forget_index();
  const auto from_scratch = contest.write("from_scratch");
  CHECK(from_index == from_scratch);
  CHECK(from_index.contains("code/1.html"));

  // Each page that the last verdict is news to, and none of them twice.
  for (const auto& [address, bytes] : Contest::contents(output)) {
    CAPTURE(address);
    const bool own = address.starts_with("evaluation/") || address.starts_with("compare/");
    if (own && address.find('8') == address.npos) continue;  // as they were when they were judged
    if (address.starts_with("run/") && address != "run/zoe.html") continue;
    CHECK(from_scratch.contains(address));
    CHECK(from_scratch.at(address) == bytes);
  }
  CHECK(from_scratch.at("index.html").find("zoe") != std::string::npos);
  for (const std::string& line : contest.said) FAIL_CHECK(line);
}
