// SPDX-License-Identifier: Apache-2.0
#include "web/publisher.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evaluations.h"
#include "file.h"
#include "judge/interrupt.h"
#include "store/claim.h"
#include "web/write_site.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

// Five submissions that wait, and what a judge of them sees.
struct Contest {
  TempDir folder;
  ResultsDirectory results = ResultsDirectory::make(folder.path() / "results");
  const fs::path output = folder.path() / "pages";
  std::vector<std::string> said;
  std::optional<ScoreIndex> index;

  Contest() {
    for (const char* run : {"ada", "ben", "cyd", "dan", "eve"}) {
      const fs::path file = folder.path() / (std::string(run) + ".py");
      write_file_atomically(file, run);
      results.add({file, run, "softmax", 1 << 20}, {});
    }
    index.emplace(results, [](const Error&) {});
  }

  ReportLine line() {
    return [this](const std::string& text) { said.push_back(text); };
  }

  std::vector<Waiting> waiting() {
    index->refresh();
    return backlog(index->submissions(), {"softmax", 0, "", "", "", 0}).waiting;
  }

  std::string page(const std::string& name) const {
    const fs::path path = output / "evaluation" / (name + ".html");
    return fs::exists(path) ? read_file(path) : "";
  }

  bool page_says(const std::string& name, const std::string& text) const {
    return page(name).find(text) != std::string::npos;
  }

  // Stores a verdict, as a judge would.
  void judge(int number, const std::string& kernels = "") {
    StoredSubmission submission = results.submission(number);
    auto claim = Claim::take(submission, std::chrono::seconds(1000));
    Evaluation evaluation =
        evaluations::accepted({evaluations::shape("s", [](int, int) { return 2; })});
    evaluation.challenge = "softmax";
    if (!kernels.empty()) write_file_atomically(claim->folder() / "kernels.sha256", kernels + "\n");
    claim->commit(submission, evaluation);
  }

  bool marked(int number) const {
    return fs::exists(output / ".kjudge-running" / std::to_string(number));
  }
};

}  // namespace

TEST_CASE("pages follow what waits, runs and was judged") {
  Contest contest;
  Publisher publisher(contest.results, contest.output, {}, contest.line());
  CHECK(has_site(contest.output));
  publisher.waiting(contest.waiting());
  CHECK(contest.page_says("1", "queued, next to be judged"));
  CHECK(contest.page_says("5", "queued, 4 before it"));
  const auto untouched = fs::last_write_time(contest.output / "evaluation" / "5.html");
  publisher.waiting(contest.waiting());
  CHECK(fs::last_write_time(contest.output / "evaluation" / "5.html") == untouched);

  const StoredSubmission first = contest.results.submission(1);
  publisher.running(first, {});
  CHECK(contest.page_says("1", "queued, next to be judged"));
  publisher.running(first,
                    {RunningEvaluation::Step::replaying, {}, "round 3 of 6", "s", 1, 2, 0.5, ""});
  CHECK(contest.page_says("1", "replaying, round 3 of 6, shape 1 of 2: s"));
  CHECK(contest.page_says("1", "data-refresh"));
  CHECK(contest.marked(1));
  contest.judge(1);
  publisher.judged(1);
  CHECK_FALSE(contest.page_says("1", "data-refresh"));
  CHECK(contest.page_says("1", "accepted"));
  CHECK(read_file(contest.output / "run" / "ada.html").find("accepted") != std::string::npos);
  CHECK(read_file(contest.output / "index.html").find("2.000") != std::string::npos);
  CHECK_FALSE(contest.marked(1));
  publisher.waiting(contest.waiting());
  CHECK(contest.page_says("5", "queued, 3 before it"));
  CHECK(contest.said.empty());
}

TEST_CASE("what a judge that was killed left running, the next one puts right") {
  Contest contest;
  {
    Publisher publisher(contest.results, contest.output, {}, contest.line());
    publisher.waiting(contest.waiting());
    for (const int number : {1, 2}) {
      publisher.running(contest.results.submission(number),
                        {RunningEvaluation::Step::capturing, {}, "", "", 0, 0, 0, ""});
    }
    CHECK(contest.page_says("2", "aria-current=\"step\">capturing"));
  }
  // One that ends orderly in the middle of it says so itself.
  CHECK(contest.page_says("2", "queued, next to be judged"));
  CHECK(contest.page_says("1", "aria-current=\"step\">capturing"));
  contest.judge(1);  // and was killed before the page
  Publisher publisher(contest.results, contest.output, {}, contest.line());
  publisher.waiting(contest.waiting());
  CHECK(contest.page_says("1", "accepted"));
  CHECK_FALSE(contest.marked(1));
  CHECK(contest.marked(2));
  CHECK(contest.page_says("2", "queued, next to be judged"));
  CHECK(contest.said.empty());
}

TEST_CASE("those with the same kernels say so on each other's pages") {
  Contest contest;
  Publisher publisher(contest.results, contest.output, {}, contest.line());
  const std::string same(64, 'a'), other(64, 'b');
  contest.judge(1, same);
  publisher.judged(1);
  contest.judge(2, other);
  publisher.judged(2);
  CHECK_FALSE(contest.page_says("1", "Same kernels as"));
  contest.judge(3, same);
  publisher.judged(3);
  CHECK(contest.page_says("1", "Same kernels as"));
  CHECK(contest.page_says("3", "Same kernels as"));
  CHECK_FALSE(contest.page_says("2", "Same kernels as"));
  // As all pages have it, with nothing left to write.
  const auto report = [&](const Error& error) { contest.said.push_back(error.what()); };
  const Site site = read_site(contest.results, {}, report);
  CHECK(write_site(site, contest.output, report).written <= 2);  // who waits
  CHECK(contest.said.empty());
}

TEST_CASE("of many with the same kernels a page names some") {
  Site site;
  for (int number = 1; number <= static_cast<int>(kMostSameKernels) + 2; ++number) {
    SubmissionSummary& one = site.submissions.emplace_back();
    one.stored.identity.number = number;
    one.evaluations.emplace_back().kernels = "k";
  }
  CHECK(same_kernels_as(site, 1).size() == kMostSameKernels + 1);
  site.submissions.push_back(site.submissions.back());
  site.submissions.back().stored.identity.number = 1000;
  CHECK(same_kernels_as(site, 1000).empty());
  // Evaluations of one's own are not named: one that was judged three times names fewer.
  site.submissions.pop_back();
  for (int again = 2; again <= 3; ++again) {
    site.submissions.front().evaluations.push_back(site.submissions.front().evaluations.front());
    site.submissions.front().evaluations.back().number = again;
  }
  CHECK(same_kernels_as(site, 2) == std::set<EvaluationKey>{{1, 1}, {1, 2}, {1, 3}});
}

TEST_CASE("what another judge has or judged meanwhile is left to it") {
  Contest contest;
  Publisher publisher(contest.results, contest.output, {}, contest.line());
  const auto waiting = contest.waiting();
  const auto claim = Claim::take(contest.results.submission(1), std::chrono::seconds(1000));
  contest.judge(2);
  const std::string before[] = {contest.page("1"), contest.page("2")};
  publisher.waiting(waiting);
  CHECK(contest.page("1") == before[0]);
  CHECK(contest.page("2") == before[1]);
  CHECK(contest.page_says("3", "queued, 2 before it"));
}

TEST_CASE("a judge that was taken over from leaves the page to the other") {
  Contest contest;
  {
    Publisher publisher(contest.results, contest.output, {}, contest.line());
    publisher.running(contest.results.submission(1),
                      {RunningEvaluation::Step::capturing, {}, "", "", 0, 0, 0, ""});
    contest.judge(1);
    Publisher other(contest.results, contest.output, {}, contest.line());
    other.judged(1);
    CHECK(contest.page_says("1", "accepted"));
  }
  CHECK(contest.page_says("1", "accepted"));
}

TEST_CASE("pages that cannot be written are told once and stop nothing") {
  Contest contest;
  write_file_atomically(contest.output, "a file");
  {
    Publisher publisher(contest.results, contest.output, {}, contest.line());
    for (int i = 0; i < 3; ++i) {
      publisher.waiting(contest.waiting());
      publisher.running(contest.results.submission(1), {});
    }
    publisher.judged(1);
  }
  REQUIRE(contest.said.size() == 1);
  CHECK(contest.said[0].starts_with("pages: "));
  CHECK(contest.said[0].find("; judging goes on") != std::string::npos);
}

TEST_CASE("where there are too many pages to write first, an evaluation has its own page") {
  Contest contest;
  for (const int number : {1, 2, 3}) contest.judge(number);
  Publisher publisher(contest.results, contest.output, {}, contest.line(), 2);
  CHECK_FALSE(has_site(contest.output));
  publisher.running(contest.results.submission(4), {});
  contest.judge(4);
  publisher.judged(4);
  CHECK(contest.page_says("4", "accepted"));
  CHECK_FALSE(contest.page_says("4", "data-refresh"));
  CHECK(fs::exists(contest.output / "kjudge.css"));
  CHECK_FALSE(fs::exists(contest.output / "index.html"));
  CHECK(contest.page("1").empty());
  CHECK_FALSE(contest.marked(4));
  CHECK(contest.said.empty());
}

TEST_CASE("an interrupt ends the writing of pages, also for a judge") {
  Contest contest;
  const Site site = read_site(contest.results, {}, [](const Error&) {});
  const pid_t child = ::fork();
  if (child == 0) {
    note_interrupts();
    ::raise(SIGTERM);
    int interrupted = 0;
    try {
      write_site(site, contest.output, [](const Error&) {});
    } catch (const Interrupted&) {
      ++interrupted;
    }
    try {
      const Publisher publisher(contest.results, contest.output, {}, contest.line());
    } catch (const Interrupted&) {
      ++interrupted;
    }
    ::_exit(interrupted);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
  CHECK_FALSE(has_site(contest.output));
}
