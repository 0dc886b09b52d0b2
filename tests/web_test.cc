// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "error.h"
#include "evaluations.h"
#include "file.h"
#include "judge/version.h"
#include "score/result_json.h"
#include "store/challenges.h"
#include "web/address.h"
#include "web/chart.h"
#include "web/metrics.h"
#include "web/pages.h"
#include "web/task.h"
#include "web/write_site.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

const fs::path kPages = fs::path(KJUDGE_TEST_FOLDER) / "pages";
const std::string kHostile = "<script>alert(1)</script>'\"&\u202e";

// As tests/pages has it under `name`; the version apart.
void check_golden(std::string page, const char* name) {
  for (std::size_t at; (at = page.find(kVersion)) != page.npos;)
    page.replace(at, std::string_view(kVersion).size(), "VERSION");
  const fs::path path = kPages / name;
  if (std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr) write_file_atomically(path, page);
  CHECK(page == read_file(path));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

SubmissionSummary submission(int number, const std::string& run,
                             std::vector<Evaluation> evaluations) {
  SubmissionSummary made;
  made.stored.identity = {number,
                          cat("id-", number),
                          "softmax",
                          run,
                          run + ".py",
                          cat(std::string(62, 'c'), number + 10),  // all of other files
                          "2025-01-31T11:00:00Z"};
  for (Evaluation& evaluation : evaluations) {
    EvaluationSummary& summary = made.evaluations.emplace_back();
    summary.number = static_cast<int>(made.evaluations.size());
    made.stored.evaluations.push_back(summary.number);
    summary.terms = std::make_shared<const Terms>(terms_of(evaluation));
    summary.id = evaluation.id;
    summary.started = evaluation.started;
    summary.variant = evaluation.variant;
    summary.verdict = evaluation.verdict;
    summary.score = score(evaluation);
    summary.timed = !summary.score.shapes.empty();
  }
  return made;
}

Evaluation evaluation(double ratio, const std::string& started, double spread = 0.01) {
  Evaluation made = evaluations::accepted({evaluations::shape(
      "8x8", [=](int round, int pair) { return ratio * (1 + spread * round + 0.001 * pair); })});
  made.started = started;
  return made;
}

// The page of the first evaluation of a submission, whose result is `evaluation`.
struct PageOf {
  PageOf(const SubmissionSummary& of, const Evaluation& evaluation)
      : scored(score(evaluation)), page{of,         of.evaluations.front(),
                                        evaluation, scored,
                                        {},         {},
                                        {},         {},
                                        nullptr} {}
  const Score scored;
  EvaluationPage page;
};

}  // namespace

TEST_CASE("every name has an address of its own, and none leads out") {
  CHECK(run_address("ada") == "run/ada.html");
  CHECK(run_address("a.b_c-1") == "run/a.b_c-1.html");
  std::set<std::string> addresses;
  const std::vector<std::string> names = {"ada",
                                          "Ada",
                                          "",
                                          ".",
                                          "..",
                                          "../../etc",
                                          "a/b",
                                          "a b",
                                          kHostile,
                                          "~ada",
                                          std::string(300, 'a'),
                                          std::string(301, 'a'),
                                          "é",
                                          std::string("a\0b", 3)};
  for (const std::string& name : names) {
    const std::string address = run_address(name);
    CAPTURE(address);
    CHECK(address.size() < 120);
    CHECK(address.find("..") == address.npos);
    CHECK_NOTHROW(HtmlAttribute::href("../" + address));
    addresses.insert(address);
  }
  CHECK(addresses.size() == names.size());
  CHECK(addresses.contains("run/ada.html"));
  // A run that takes the name of another's hash has not its page.
  CHECK(address_part(address_part("Ada")) != address_part("Ada"));
  CHECK(evaluation_address(42, 1) == "evaluation/42.html");
  CHECK(evaluation_address(42, 2) == "evaluation/42-2.html");
  CHECK(profile_address(42, 2, "x") != profile_address(42, 1, "2-x"));
  CHECK(comparison_address({42, 1}, {57, 2}) == "compare/42-with-57-2.html");
}

TEST_CASE("ticks are round numbers within the range, however odd the range is") {
  const auto check = [](double low, double high, const std::vector<double>& at, int decimals) {
    const Ticks ticks = ticks_within(low, high, 6);
    REQUIRE(ticks.at.size() == at.size());
    for (std::size_t i = 0; i < at.size(); ++i) CHECK(ticks.at[i] == doctest::Approx(at[i]));
    CHECK(ticks.decimals == decimals);
  };
  check(0.9, 2.6, {1, 1.5, 2, 2.5}, 1);
  check(1.494, 1.551, {1.5, 1.51, 1.52, 1.53, 1.54, 1.55}, 2);
  check(0, 60, {0, 10, 20, 30, 40, 50, 60}, 0);
  check(-1, 1e300, {0, 2e299, 4e299, 6e299, 8e299, 1e300}, 0);
  CHECK(ticks_within(1, 1, 6).at.empty());
  CHECK(ticks_within(2, 1, 6).at.empty());
  CHECK(ticks_within(-1e308, 1e308, 1).at.size() <= 2);
}

TEST_CASE("a chart has a dot for each pair, and none where there are no numbers") {
  Evaluation judged = evaluation(1.5, "");
  const Score scored = score(judged);
  ShapeFacts& shape = judged.shapes[0];
  shape.rounds[2].pairs[1].regime = "large";
  std::string svg = ratio_chart(shape, scored.shapes[0]).print();
  CHECK(count(svg, "<circle ") == 29 + 1);  // one in the legend
  CHECK(count(svg, "<rect class=\"dot series-1\"") == 1 + 1);
  CHECK(svg.find("Speedups of the 30 pairs of 8x8: median 1.540×, interval 1.503 to 1.578") !=
        svg.npos);
  for (RoundFacts& round : shape.rounds) {
    for (Pair& pair : round.pairs) pair.arms[1].replays[0].event_ns = 0;  // an infinite ratio
  }
  CHECK(ratio_chart(shape, scored.shapes[0]).print().empty());
  shape.rounds.clear();
  CHECK(ratio_chart(shape, scored.shapes[0]).print().empty());
  CHECK(history_chart({}, "x").print().empty());
  const std::string history =
      history_chart({{1e9, 1, {1, 1}, "a"}, {1e9 + 60, 3, {2, 1}, "b"}, {1e9 + 90, 2, {3, 1}, "c"}},
                    "x")
          .print();
  CHECK(count(history, "<circle ") == 3);
  CHECK(history.find("<path class=\"best\"") != history.npos);
  CHECK(count(history, "V") == 1);  // the best rose once
}

TEST_CASE("a leaderboard has the best of each run, as rank has it, by what compares") {
  Evaluation on_gpu = evaluation(9, "2025-01-05T00:00:00Z");
  on_gpu.arch = "sm_90";
  Evaluation refused = evaluations::accepted({});
  refused.verdict = Verdict::refused;
  refused.started = "2025-01-06T00:00:00Z";
  Evaluation no_device;
  no_device.started = "2025-01-07T00:00:00Z";
  Site site;
  site.submissions = {
      submission(1, "ada", {evaluation(1, "2025-01-01T00:00:00Z")}),
      submission(2, "bob",
                 {evaluation(2, "2025-01-02T00:00:00Z"), evaluation(1.02, "2025-01-04T00:00:00Z")}),
      submission(3, "ada", {evaluation(1.5, "2025-01-03T00:00:00Z")}),
      submission(4, "ada", {evaluation(0.5, "not a time")}),
      submission(5, "eve", {on_gpu}),
      submission(6, "zoe", {refused}),
      submission(7, "sam", {no_device})};
  const std::vector<Leaderboard> boards = make_leaderboards(site);
  REQUIRE(boards.size() == 2);
  // Ordered by their newest evaluation.
  const Leaderboard& cpu = boards[0];
  CHECK(cpu.variant.arch == "x86_64");
  REQUIRE(cpu.rows.size() == 2);
  CHECK(cpu.rows[0].key == EvaluationKey{3, 1});
  CHECK(cpu.rows[1].key == EvaluationKey{2, 2});  // the newest of the submission, not its best
  CHECK(cpu.rows[1].ranked.rank == 2);
  REQUIRE(cpu.others.size() == 1);
  CHECK(cpu.others[0].key == EvaluationKey{6, 1});
  REQUIRE(cpu.history.size() == 3);  // without the one that has no time
  CHECK(cpu.history[1].key == EvaluationKey{3, 1});
  CHECK(boards[1].variant.arch == "sm_90");

  const std::string page = leaderboard_page(cpu, boards);
  CHECK(page.find("href=\"../run/ada.html\"") != page.npos);
  CHECK(page.find("sm_90") != page.npos);
  CHECK(count(page, "id=") == 1);
}

TEST_CASE("a results directory is read: what waits, what is bad, a score for each dtype") {
  const TempDir directory;
  std::vector<std::string> said;
  const auto put = [&](int number, const std::string& run, const std::string& result) {
    const fs::path folder = directory.path() / "submissions" / std::to_string(number);
    fs::create_directories(folder / "evaluations");
    const std::string sha256(64, 'a');
    write_file_atomically(folder / "submission.json",
                          cat("{\"format\": \"kjudge-submission/1\", \"id\": \"u\", \"run\": \"",
                              run, "\", \"name\": \"a.py\", \"sha256\": \"", sha256,
                              "\", \"received\": \"2025-01-31T12:00:00Z\"}"));
    if (result.empty()) return;
    fs::create_directories(folder / "evaluations" / "1");
    write_file_atomically(folder / "evaluations" / "1" / "result.json", result);
  };
  const fs::path packages = fs::path(KJUDGE_TEST_FOLDER).parent_path() / "packages";
  const Challenge challenge = read_challenge(packages / "softmax");
  Evaluation two_dtypes = evaluations::accepted(
      {evaluations::shape("4096x1024-float32", [](int, int) { return 2; }),
       evaluations::shape("1823x781-float32", [](int, int) { return 2; }),
       evaluations::shape("1024x50257-float32", [](int, int) { return 2; }),
       evaluations::shape("16384x4096-bfloat16", [](int, int) { return 8; }),
       evaluations::shape("512x128256-bfloat16", [](int, int) { return 8; })});
  two_dtypes.arch = "sm_90";
  two_dtypes.device = "NVIDIA H200 GPU-1";
  two_dtypes.challenge_sha256 = challenge.sha256;
  Evaluation failed = evaluations::accepted({});
  failed.verdict = Verdict::judge_error;
  put(1, "ada", result_to_json(two_dtypes));
  put(2, "bob", "");
  put(3, "eve", "{}");
  put(4, "sam", result_to_json(failed));
  const auto report = [&](const Error& error) { said.push_back(error.what()); };
  const Site site = read_site(ResultsDirectory(directory.path()), {challenge}, report);
  REQUIRE(site.submissions.size() == 4);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("submissions/3/evaluations/1/result.json: ") != said[0].npos);
  CHECK(!site.submissions[0].running);
  REQUIRE(site.submissions[1].running);
  CHECK(site.submissions[1].running->ahead == 0);
  CHECK(!site.submissions[2].running);  // a bad file is for a person to look at
  CHECK(!site.submissions[3].running);  // a judge error is judged again only when somebody says so
  CHECK(site.submissions[3].next_number() == 2);

  std::map<std::string, double> best;
  for (const Leaderboard& board : make_leaderboards(site)) {
    if (!board.rows.empty())
      best[variant_name(board.variant)] = board.rows[0].ranked.entry.score.speedup;
  }
  CHECK(best.size() == 3);
  CHECK(best["NVIDIA H200"] == doctest::Approx(std::pow(2.0, 1.8)));
  CHECK(best["NVIDIA H200, bfloat16"] == doctest::Approx(8));
  CHECK(best["NVIDIA H200, float32"] == doctest::Approx(2));
  // Of another state of the challenge nothing is known.
  Challenge changed = challenge;
  changed.sha256 = std::string(64, 'e');
  CHECK(
      make_leaderboards(read_site(ResultsDirectory(directory.path()), {changed}, report)).size() ==
      2);
}

TEST_CASE("code is shown only where every version of the challenge that judged it shows it") {
  const TempDir folder;
  auto results = ResultsDirectory::make(folder.path() / "results");
  const fs::path packages = fs::path(KJUDGE_TEST_FOLDER).parent_path() / "packages";
  const Challenge first = read_challenge(packages / "softmax");
  REQUIRE(first.publish == PublishCode::never);
  keep_challenge(results, first);
  write_file_atomically(folder.path() / "a.py", "pass\n");
  results.add({folder.path() / "a.py", "ada", "softmax", 1000}, {});
  Challenge second = first;
  second.version = first.version + 1;
  second.publish = PublishCode::all;
  const auto published = [&] {
    const Site site = read_site(results, {second}, [](const Error& error) { FAIL(error.what()); });
    return site.submissions.at(0).published;
  };
  CHECK(published());
  Evaluation judged =
      evaluations::accepted({evaluations::shape("4096x1024-float32", [](int, int) { return 2; })});
  judged.challenge_version = first.version;
  judged.challenge_sha256 = first.sha256;
  const fs::path evaluation = results.path() / "submissions/1/evaluations/1";
  fs::create_directories(evaluation);
  write_file_atomically(evaluation / "result.json", result_to_json(judged));
  CHECK_FALSE(published());
}

TEST_CASE("what was asked for in part is ranked with its like, and shifts nobody elsewhere") {
  const auto judged = [](std::vector<ShapeFacts> shapes, const char* asked) {
    Evaluation made = evaluations::accepted(std::move(shapes));
    if (*asked != '\0') made.variant = parse_request(asked);
    return made;
  };
  const auto shape = [](const char* name, double ratio) {
    return evaluations::shape(name, [=](int, int) { return ratio; });
  };
  Site site;
  Challenge& challenge = site.challenges.emplace_back();
  challenge.name = "softmax";
  challenge.sha256 = std::string(64, 'a');
  for (const auto& [name, dtype] : {std::pair("a", "float32"), {"b", "float32"}, {"c", "int8"}}) {
    Shape& known = challenge.shapes.emplace_back();
    known.name = name;
    known.dtype = dtype;
    known.arch = "x86_64";
  }
  site.submissions = {
      submission(1, "ada", {judged({shape("a", 4), shape("b", 4)}, "softmax:float32")}),
      submission(2, "ben", {judged({shape("c", 3)}, "softmax:::c")}),
      submission(3, "cyd", {judged({shape("a", 2), shape("b", 2), shape("c", 2)}, "")}),
      submission(4, "dan", {judged({}, "softmax:int8")})};
  site.submissions[3].evaluations[0].verdict = Verdict::runtime_error;
  std::map<std::string, std::string> boards;
  for (const Leaderboard& board : make_leaderboards(site)) {
    std::string& line = boards[variant_name(board.variant)];
    for (const LeaderboardRow& row : board.rows) line += row.ranked.entry.run + " ";
    line += "|";
    for (const LeaderboardRow& row : board.others) {
      line += " " + row.submission->stored.identity.run;
    }
  }
  CHECK(boards == std::map<std::string, std::string>{{"x86_64", "cyd | ada ben dan"},
                                                     {"x86_64, float32", "ada cyd |"},
                                                     {"x86_64, int8", "ben cyd | dan"},
                                                     {"x86_64, c", "ben cyd |"}});
}

TEST_CASE("seconds of a time") {
  CHECK(seconds_of("1970-01-01T00:00:00Z") == 0.);
  CHECK(seconds_of("2025-01-31T12:00:00Z") == 1738324800.);
  CHECK(seconds_of("2024-02-29T00:00:01.5Z") == 1709164801.);
  for (const char* wrong : {"", "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z",
                            "2025-01-01T24:00:00Z", "xxxx-01-01T00:00:00Z"}) {
    CAPTURE(wrong);
    CHECK(!seconds_of(wrong));
  }
}

TEST_CASE("nothing that a contestant or a file says is markup on any page") {
  Evaluation judged =
      evaluations::accepted({evaluations::shape(kHostile, [](int, int) { return 2; })});
  for (std::string* text : {&judged.id, &judged.challenge, &judged.submission,
                            &judged.kjudge_version, &judged.driver, &judged.device, &judged.arch,
                            &judged.node, &judged.sandbox, &judged.message, &judged.log}) {
    *text = kHostile;
  }
  judged.phases = {{kHostile, 1}};
  ShapeFacts& shape = judged.shapes[0];
  shape.message = kHostile;
  for (RoundFacts& round : shape.rounds) {
    round.throttle_reasons = {{kHostile}};
    for (Pair& pair : round.pairs) pair.regime = kHostile, pair.void_causes = {kHostile};
  }
  shape.rounds[0].pairs[0].regime = "other";
  shape.failure.emplace();
  shape.failure->output = shape.failure->check = shape.failure->regime = kHostile;
  Profile profile;
  profile.shape = profile.device = profile.ncu = profile.set = profile.driver = kHostile;
  profile.kernels = {{kHostile,
                      kHostile,
                      kHostile,
                      {{kHostile, kHostile, Json{kHostile}}, {"a", kHostile, Json{2.5}}}}};

  Site site;
  site.submissions = {submission(1, kHostile, {judged}), submission(2, kHostile, {})};
  SubmissionSummary& first = site.submissions[0];
  first.stored.identity.name = first.stored.identity.received = kHostile;
  first.evaluations[0].profiled = {kHostile};
  site.submissions[1].running = RunningEvaluation{
      RunningEvaluation::Step::replaying, {}, kHostile, kHostile, 1, 3, 0.5, kHostile};
  const auto boards = make_leaderboards(site);
  REQUIRE(boards.size() == 1);
  const ComparedEvaluation side{{1, 1}, kHostile, judged, score(judged), {profile}};
  PageOf page_of(first, judged);
  EvaluationPage& page = page_of.page;
  page.same_kernels = {{2, 1}};
  page.previous = EvaluationKey{2, 1};
  page.board = boards[0].address;
  for (const std::string& html :
       {evaluation_page(page), running_page(site.submissions[1]), run_page(site, kHostile),
        leaderboard_page(boards[0], boards), front_page(site, boards),
        challenge_page(site, boards, kHostile, 1, ""), profile_page({1, 1}, kHostile, profile),
        comparison_page(side, side)}) {
    CAPTURE(html);
    CHECK(count(html, "<script") == 1);  // the site's own
    CHECK(count(html, "alert(1)") > 0);
    CHECK(count(html, "&lt;script&gt;alert(1)&lt;/script&gt;") == count(html, "alert(1)"));
    CHECK(html.find("\u202e") == html.npos);
  }
}

TEST_CASE("a comparison says which side is of part of the challenge") {
  const Evaluation whole =
      evaluations::accepted({evaluations::shape("s", [](int, int) { return 2; })});
  Evaluation part = whole;
  part.variant = parse_request("softmax:float32");
  const ComparedEvaluation left{{1, 1}, "ada", whole, score(whole), {}};
  const ComparedEvaluation right{{2, 1}, "ben", part, score(part), {}};
  CHECK(count(comparison_page(left, left), "partial") == 0);
  CHECK(count(comparison_page(left, right), "partial: softmax:float32") == 1);
}

TEST_CASE("the page of an evaluation says what went wrong, and the policy holds") {
  Evaluation refused = evaluations::accepted({});
  refused.verdict = Verdict::refused;
  refused.message = "node 3: a host function";
  refused.log = "Traceback (most recent call last):\n  <module>\n";
  check_golden(evaluation_page(PageOf(submission(7, "ada", {refused}), refused).page),
               "refused.html");
}

TEST_CASE("the page of an evaluation has the rows and codes that a check found wrong") {
  Evaluation judged = evaluations::accepted({evaluations::shape("s", [](int, int) { return 2; })});
  judged.verdict = judged.shapes[0].verdict = Verdict::wrong_result;
  judged.shapes[0].failure.emplace();
  judged.shapes[0].failure->rows = {100, 3, 7, 0.5, 0.25};
  judged.shapes[0].failure->codes = {4, 17};
  const SubmissionSummary summary = submission(1, "run", {judged});
  const std::string html = evaluation_page(PageOf(summary, judged).page);
  for (const char* text : {"3 of 100 wrong", "0.5, limit 0.25", "4 elements, at most 17 steps"}) {
    CHECK_MESSAGE(html.find(text) != html.npos, html);
  }
}

TEST_CASE("the page of an evaluation that runs says where it is") {
  SubmissionSummary of = submission(8, "ada", {});
  of.running = RunningEvaluation{RunningEvaluation::Step::replaying,
                                 {},
                                 "round 2 of 6",
                                 "64x48",
                                 2,
                                 3,
                                 0.25,
                                 "2025-01-31T12:00:00Z"};
  const std::string page = running_page(of);
  CHECK(page.find("replaying, round 2 of 6, shape 2 of 3: 64x48") != page.npos);
  CHECK(page.find("value=\"25\"") != page.npos);
  check_golden(page, "running.html");
  of.running = RunningEvaluation{RunningEvaluation::Step::queued, 4};
  CHECK(running_page(of).find("queued, 4 before it") != std::string::npos);
  of.running->ahead = 0;
  CHECK(running_page(of).find("queued, next to be judged") != std::string::npos);
  of.running->ahead.reset();
  CHECK(running_page(of).find("queued,") == std::string::npos);
}

TEST_CASE("metrics in words and numbers") {
  CHECK(explain_metric("sm__throughput.avg.pct_of_peak_sustained_elapsed") ==
        "streaming multiprocessors; average over the units; percent of the most that can be "
        "sustained, over the whole time");
  CHECK(explain_metric("nobody_knows") == "");
  CHECK(metric_text({"a", "ns", Json{std::int64_t{1234567}}}) == "1,234,567 ns");
  CHECK(metric_text({"a", "", Json{std::int64_t{-123}}}) == "-123");
  CHECK(metric_text({"a", "%", Json{81.257}}) == "81.257 %");
  CHECK(metric_text({"a", "byte/s", Json{3.2e12}}) == "3,200,000,000,000 byte/s");
  CHECK(metric_text({"a", "", Json{std::string("NVIDIA H200")}}) == "NVIDIA H200");
  CHECK(metric_value({"a", "", Json{2.5}}) == 2.5);
  CHECK(!metric_value({"a", "", Json{std::string("2.5")}}));
}

TEST_CASE("a table of metrics is CSV that no spreadsheet runs") {
  Profile profile;
  profile.kernels = {{"f<\"a\", 1>\n",
                      "(1, 1, 1)",
                      "(2, 1, 1)",
                      {{"m", "%", Json{1.5}}, {"n", "", Json{std::string("=cmd|x")}}}}};
  const auto rows = parse_csv(profile_csv(profile));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] ==
        std::vector<std::string>{"number", "kernel", "grid", "block", "metric", "unit", "value"});
  CHECK(rows[1] ==
        std::vector<std::string>{"1", "f<\"a\", 1>\n", "(1, 1, 1)", "(2, 1, 1)", "m", "%", "1.5"});
  CHECK(rows[2].back() == "'=cmd|x");
}

TEST_CASE("a task is read as the little Markdown that it may have, and HTML stays text") {
  const auto print = [](const char* text) {
    std::string page;
    for (const Html& part : task_elements(text)) page += part.print();
    return page;
  };
  CHECK(print("# A `b`\nfirst\nsecond **bold**\n\nthird") ==
        "<h3>A <code>b</code></h3>\n<p>first\nsecond <strong>bold</strong></p>\n<p>third</p>\n");
  CHECK(print("text\n\n    a\n      b\n```c\n# <x>\n```\nend").find("<pre>\na\n  b\n</pre>") !=
        std::string::npos);
  CHECK(print("```c\n# <x>\n").find("<pre>\n# &lt;x&gt;\n</pre>") != std::string::npos);
  CHECK(print("- a\n  more\n- b\n") == "<ul><li>a\nmore</li>\n<li>b</li>\n</ul>\n");
  const std::string table = print("| a | |\n|---|---|\n| 1 | `2` |\n");
  CHECK(table.find("<thead><tr><th scope=\"col\">a</th><td></td></tr>") != table.npos);
  CHECK(table.find("<tbody><tr><td>1</td><td><code>2</code></td></tr>") != table.npos);
  CHECK(print("a ` b ** c") == "<p>a ` b ** c</p>\n");
  CHECK(print("<script>alert(1)</script>") == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n");
  CHECK(print("|\n||\n#no\n-no").find("<table>") != std::string::npos);
  CHECK(print("").empty());
}
