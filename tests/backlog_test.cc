// SPDX-License-Identifier: Apache-2.0
#include "judge/backlog.h"

#include <doctest/doctest.h>

#include "json_faults.h"

using namespace kjudge;

namespace {

const Terms kTerms = {"softmax", 1, "f00", "sm_90", "NVIDIA H200", 1};

constexpr double kNoon = 1738324800;  // 2025-01-31T12:00:00Z

ScoredSubmission received(int number, const std::string& run, const std::string& sha256,
                          const std::string& minute = "00") {
  ScoredSubmission submission;
  submission.number = number;
  submission.challenge = "softmax";
  submission.identity.run = run;
  submission.identity.sha256 = sha256;
  submission.identity.received = cat("2025-01-31T12:", minute, ":00Z");
  return submission;
}

ScoredEvaluation evaluated(Verdict verdict, const Terms& terms = kTerms) {
  ScoredEvaluation evaluation;
  evaluation.number = 1;
  evaluation.terms = std::make_shared<const Terms>(terms);
  evaluation.verdict = verdict;
  return evaluation;
}

FileStamp claimed_at(double seconds) {
  return {static_cast<std::int64_t>(seconds) * 1'000'000'000, 1};
}

std::vector<int> order(const std::vector<ScoredSubmission>& submissions) {
  std::vector<int> numbers;
  for (const Waiting& waiting : backlog(submissions, kTerms).waiting) {
    numbers.push_back(waiting.submission->number);
  }
  return numbers;
}

}  // namespace

TEST_CASE("a run's hundred submissions do not block another's one") {
  std::vector<ScoredSubmission> submissions;
  for (int i = 1; i <= 100; ++i) submissions.push_back(received(i, "ada", cat("a", i)));
  submissions.push_back(received(101, "ben", "b", "01"));
  double now = kNoon + 3600;
  std::vector<int> judged;
  for (int i = 0; i < 5; ++i) {
    const int number = order(submissions).front();
    judged.push_back(number);
    ScoredSubmission& one = submissions[static_cast<std::size_t>(number) - 1];
    one.claims = claimed_at(now += 60);
    one.evaluations.push_back(evaluated(Verdict::accepted));
  }
  CHECK(judged == std::vector{1, 101, 2, 3, 4});
}

TEST_CASE("somebody's many runs do not block another's one, nor stand before it in the queue") {
  std::vector<ScoredSubmission> submissions;
  for (int i = 1; i <= 9; ++i) submissions.push_back(received(i, cat("run", i), cat("a", i)));
  submissions.push_back(received(10, "bens", "b", "01"));
  for (ScoredSubmission& one : submissions) one.identity.owner = "ada";
  submissions.back().identity.owner = "ben";
  CHECK(order(submissions) == std::vector{1, 10, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(places_in_queue(submissions, {}, [](int) { return false; }).at(10) == 1);
  // Of what the organizer handed in, each run is somebody.
  for (ScoredSubmission& one : submissions) one.identity.owner.clear();
  CHECK(order(submissions).back() == 10);
}

TEST_CASE("what waits for another's verdict on the same files has a place after it") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "a"), received(2, "ben", "b"),
                                               received(3, "cyd", "b")};
  CHECK(places_in_queue(submissions, {}, [](int) { return false; }) ==
        std::map<int, int>{{1, 0}, {2, 1}, {3, 2}});
}

TEST_CASE("who came while a run had its turn goes before its next one, who comes later does not") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1"), received(2, "ada", "2"),
                                               received(3, "ben", "3", "04"),
                                               received(4, "cyd", "4", "06")};
  submissions[0].claims = claimed_at(kNoon + 5 * 60);
  submissions[0].evaluations.push_back(evaluated(Verdict::accepted));
  CHECK(order(submissions) == std::vector{3, 2, 4});
}

TEST_CASE("a submission waits for its own challenge only") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1"), received(2, "ben", "2"),
                                               received(3, "cyd", "3")};
  submissions[0].challenge = "matmul";
  submissions[1].challenge = "";  // of version 1 of the layout, with nothing judged
  CHECK(order(submissions) == std::vector{2, 3});
}

TEST_CASE("it is judged once for each version, kind of GPU, arch and method") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1")};
  auto& evaluations = submissions[0].evaluations;
  evaluations.push_back(evaluated(Verdict::wrong_result));
  CHECK(order(submissions).empty());
  for (const Terms& others : {Terms{"softmax", 2, "f00", "sm_90", "NVIDIA H200", 1},
                              Terms{"softmax", 1, "f00", "sm_90", "NVIDIA H100", 1},
                              Terms{"softmax", 1, "f00", "sm_100", "NVIDIA H200", 1},
                              Terms{"softmax", 1, "f00", "sm_90", "NVIDIA H200", 2}}) {
    evaluations[0] = evaluated(Verdict::wrong_result, others);
    CHECK(order(submissions) == std::vector{1});
  }
  evaluations.push_back(evaluated(Verdict::accepted));
  CHECK(order(submissions).empty());
}

TEST_CASE("a challenge that changed without a new version is told") {
  std::vector<ScoredSubmission> submissions = {received(7, "ada", "1")};
  const Terms changed = {"softmax", 1, "f01", "sm_90", "NVIDIA H200", 1};
  submissions[0].evaluations.push_back(evaluated(Verdict::accepted, changed));
  const std::string said = json_faults::message_of([&] { order(submissions); });
  CHECK(said ==
        "challenge softmax was changed since submission 7 was judged, and its version is still 1; "
        "raise the version, and all are judged again");
}

TEST_CASE("the same files wait for the first one's verdict and have it") {
  std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "same"), received(2, "ben", "same"), received(3, "cyd", "other")};
  CHECK(order(submissions) == std::vector{1, 3});
  submissions[0].evaluations.push_back(evaluated(Verdict::wrong_result));
  const Backlog now = backlog(submissions, kTerms);
  REQUIRE(now.waiting.size() == 2);
  CHECK(now.waiting[0].submission == &submissions[1]);
  CHECK(now.waiting[0].answered_by == &submissions[0]);
  CHECK(now.waiting[0].answer == &submissions[0].evaluations[0]);
  CHECK(now.waiting[1].answer == nullptr);
  // Also where the later one was judged, say because the first one came with an older store.
  std::swap(submissions[0].evaluations, submissions[1].evaluations);
  CHECK(backlog(submissions, kTerms).waiting[0].answered_by == &submissions[1]);
  // A judge error answers nobody.
  submissions[1].evaluations[0].verdict = Verdict::judge_error;
  CHECK(order(submissions) == std::vector{1, 3});
}

TEST_CASE("an invalid evaluation answers nobody") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "same"),
                                               received(2, "ben", "same")};
  submissions[0].evaluations = {evaluated(Verdict::accepted), evaluated(Verdict::accepted)};
  submissions[0].evaluations[0].id = "first";
  submissions[0].evaluations[1].id = "second";
  const auto answer = [&](const std::set<std::string_view>& invalid) {
    const Backlog now = backlog(submissions, kTerms, {{}, {}, invalid});
    REQUIRE(now.waiting.size() == 1);  // the first one is judged, and waits for nobody
    return now.waiting[0].answer;
  };
  CHECK(answer({}) == &submissions[0].evaluations[1]);
  CHECK(answer({"second"}) == &submissions[0].evaluations[0]);
  CHECK(answer({"first", "second"}) == nullptr);
}

TEST_CASE("the newest of several that were judged answers") {
  std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "same"), received(2, "ben", "same"), received(3, "cyd", "same")};
  for (ScoredSubmission& one : {std::ref(submissions[0]), std::ref(submissions[1])}) {
    one.evaluations = {evaluated(Verdict::accepted)};
  }
  submissions[1].evaluations[0].started = "2025-01-31T13:00:00Z";
  CHECK(backlog(submissions, kTerms).waiting.at(0).answered_by == &submissions[1]);
}

TEST_CASE("of several that were judged in one second the same one answers everybody") {
  for (const int newer : {0, 1}) {
    std::vector<ScoredSubmission> submissions = {
        received(1, "ada", "same"), received(2, "ben", "same"), received(3, "cyd", "same")};
    for (std::size_t i = 0; i < 2; ++i) {
      submissions[i].evaluations = {evaluated(Verdict::accepted)};
      submissions[i].evaluations[0].started = "2025-01-31T13:00:00Z";
      submissions[i].evaluations[0].id = static_cast<int>(i) == newer ? "b" : "a";
    }
    CHECK(backlog(submissions, kTerms).waiting.at(0).answer->id == "b");
  }
}

TEST_CASE("nobody waits for one of the same files that is damaged") {
  const std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "same"), received(2, "ben", "same"), received(3, "cyd", "same")};
  BacklogOptions options;
  options.left_out = {1};
  const Backlog now = backlog(submissions, kTerms, options);
  REQUIRE(now.waiting.size() == 2);
  CHECK(now.waiting[0].submission->number == 1);
  CHECK(now.waiting[1].submission->number == 2);
  REQUIRE(now.same_as_waiting.size() == 1);
  CHECK(now.same_as_waiting[0].second->number == 2);
}

TEST_CASE("who was claimed while a clock was ahead waits no longer for that") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1"), received(2, "ada", "2"),
                                               received(3, "ben", "3", "04"),
                                               received(4, "cyd", "4", "06")};
  submissions[0].claims = claimed_at(2 * kNoon);
  submissions[0].evaluations.push_back(evaluated(Verdict::accepted));
  CHECK(order(submissions) == std::vector{2, 3, 4});
}

TEST_CASE("who came while a clock was ahead waits no longer for that") {
  std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "1"), received(2, "ben", "2", "04"), received(3, "cyd", "3", "06")};
  submissions[0].identity.received = "2500-01-31T12:00:00Z";
  submissions[1].identity.received = "2400-01-31T12:00:00Z";
  CHECK(order(submissions) == std::vector{1, 2, 3});
}

TEST_CASE("the same files for other shapes are judged for themselves") {
  std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "same"), received(2, "ben", "same"), received(3, "cyd", "same"),
      received(4, "dan", "same")};
  submissions[1].identity.variant = parse_request("softmax:float32");
  submissions[2].identity.variant = parse_request("softmax:float32:h200");
  submissions[3].identity.variant = parse_request("softmax:::a");
  CHECK(order(submissions) == std::vector{1, 2, 4});
  submissions[0].evaluations.push_back(evaluated(Verdict::accepted));
  submissions[1].evaluations.push_back(evaluated(Verdict::accepted));
  const Backlog now = backlog(submissions, kTerms);
  REQUIRE(now.waiting.size() == 2);
  CHECK(now.waiting[0].submission == &submissions[2]);
  CHECK(now.waiting[0].answered_by == &submissions[1]);
  CHECK(now.waiting[1].answer == nullptr);
  // Where the device runs nothing else, a part is all of it.
  Shape only;
  only.name = "a";
  only.dtype = "float32";
  submissions[1].evaluations.clear();
  const Backlog whole = backlog(submissions, kTerms, {{}, {only}, {}});
  REQUIRE(whole.waiting.size() == 3);
  for (const Waiting& waiting : whole.waiting) CHECK(waiting.answered_by == &submissions[0]);
}

TEST_CASE("what passes all that is timed passes the tests of other dtypes too: it is all of it") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "same"),
                                               received(2, "ben", "same")};
  submissions[1].identity.variant = parse_request("softmax:float32");
  submissions[0].evaluations.push_back(evaluated(Verdict::accepted));
  Shape timed, test;
  timed.name = "a";
  timed.dtype = "float32";
  test.name = "t";
  test.dtype = "float16";
  test.timed = false;
  CHECK(backlog(submissions, kTerms, {{}, {timed, test}, {}}).waiting[0].answered_by ==
        &submissions[0]);
  test.timed = true;
  CHECK(backlog(submissions, kTerms, {{}, {timed, test}, {}}).waiting[0].answer == nullptr);
}

TEST_CASE("one whose files were not kept answers only its like") {
  std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "same"), received(2, "ben", "same"), received(3, "cyd", "same")};
  submissions[0].identity.keep = submissions[1].identity.keep = false;
  CHECK(order(submissions) == std::vector{1, 3});
  submissions[0].evaluations.push_back(evaluated(Verdict::accepted));
  const Backlog now = backlog(submissions, kTerms);
  REQUIRE(now.waiting.size() == 2);
  CHECK(now.waiting[0].answered_by == &submissions[0]);
  CHECK(now.waiting[1].submission == &submissions[2]);
  CHECK(now.waiting[1].answer == nullptr);
  // One that was kept answers all.
  submissions[2].evaluations.push_back(evaluated(Verdict::accepted));
  CHECK(backlog(submissions, kTerms).waiting[0].answered_by == &submissions[2]);
}

TEST_CASE("what asks for another GPU, or for shapes of one, is left to a judge with it") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1"), received(2, "ben", "2"),
                                               received(3, "cyd", "3"), received(4, "dan", "4")};
  submissions[0].identity.variant = parse_request("softmax::h100");
  submissions[1].identity.variant = parse_request("softmax::h200");
  submissions[2].identity.variant = parse_request("softmax:float32");
  Shape there;
  there.name = "a";
  there.dtype = "bfloat16";
  const Backlog here = backlog(submissions, kTerms, {{}, {there}, {}});
  CHECK(here.waiting.size() == 2);
  CHECK(here.for_others == std::vector<const ScoredSubmission*>{&submissions[0], &submissions[2]});
  // Of tests alone nothing is made.
  there.dtype = "float32";
  CHECK(backlog(submissions, kTerms, {{}, {there}, {}}).for_others.size() == 1);
  there.timed = false;
  CHECK(backlog(submissions, kTerms, {{}, {there}, {}}).for_others.size() == 2);
  // Once that judge was there, nobody waits for it, and its files answer nobody here.
  submissions[0].evaluations.push_back(
      evaluated(Verdict::accepted, {"softmax", 1, "f00", "sm_90", "NVIDIA H100", 1}));
  CHECK(backlog(submissions, kTerms).for_others.empty());
  // Without a device all of them have a place.
  CHECK(places_in_queue(submissions, {}, [](int) { return false; }).size() == 3);
}

TEST_CASE("a judge error is left, unless it is asked for") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1"), received(2, "ben", "2")};
  submissions[0].evaluations.push_back(evaluated(Verdict::judge_error));
  const Backlog left = backlog(submissions, kTerms);
  CHECK(left.waiting.size() == 1);
  REQUIRE(left.judge_errors.size() == 1);
  CHECK(left.judge_errors[0].submission == &submissions[0]);
  CHECK(left.judge_errors[0].evaluation == &submissions[0].evaluations[0]);
  const Backlog again =
      backlog(submissions, kTerms, {[](int number) { return number == 1; }, {}, {}});
  CHECK(again.waiting.size() == 2);
  CHECK(again.judge_errors.empty());
}

TEST_CASE("what cannot be read is not judged again") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1")};
  submissions[0].unreadable = {1};
  CHECK(order(submissions).empty());
}

TEST_CASE("devices of a kind") {
  CHECK(device_kind("sm_90", "NVIDIA H200 GPU-5f2cd15f-0f1e") == "NVIDIA H200");
  CHECK(device_kind("x86_64", "kjudge host driver: AMD EPYC") == "x86_64");
}

TEST_CASE("for every challenge, any device, and what is not kept") {
  std::vector<ScoredSubmission> submissions = {received(1, "ada", "1"), received(2, "ben", "2"),
                                               received(3, "cyd", "3")};
  submissions[0].challenge = kAllChallenges;
  submissions[1].challenge = "matmul";
  CHECK(order(submissions) == std::vector<int>{1, 3});
  submissions[0].evaluations = {evaluated(Verdict::accepted)};
  CHECK(order(submissions) == std::vector<int>{3});
  const auto waiting = [&](const Terms& terms) {
    return backlog(submissions, terms).waiting.size();
  };
  // On another device all of it waits; without one, what has a verdict anywhere does not.
  const Terms elsewhere = {"softmax", 1, "f00", "sm_80", "NVIDIA A100", 1};
  CHECK(waiting(elsewhere) == 2);
  CHECK(waiting({"softmax", 0, "", "", "", 0}) == 1);
  CHECK(waiting({"matmul", 0, "", "", "", 0}) == 2);
  submissions[0].identity.keep = false;
  CHECK(waiting(elsewhere) == 1);
  submissions[0].evaluations[0].verdict = Verdict::judge_error;
  CHECK(waiting(elsewhere) == 2);
}

TEST_CASE("places are counted for each challenge, without what is judged now") {
  std::vector<ScoredSubmission> submissions = {
      received(1, "ada", "a", "03"), received(2, "ben", "b", "01"), received(3, "cyd", "c", "02"),
      received(4, "dan", "d", "00"), received(5, "eve", "b", "09"), received(6, "fay", "f", "05")};
  submissions[3].challenge = "other";
  submissions[5].challenge = kAllChallenges;
  const auto none = [](int) { return false; };
  CHECK(places_in_queue(submissions, {}, none) ==
        std::map<int, int>{{2, 0}, {3, 1}, {1, 2}, {4, 0}, {5, 1}, {6, 1}});
  CHECK(places_in_queue(submissions, {}, [](int number) { return number == 2; }) ==
        std::map<int, int>{{3, 0}, {1, 1}, {4, 0}, {5, 0}, {6, 1}});
  for (ScoredSubmission& one : submissions) one.evaluations = {evaluated(Verdict::accepted)};
  const Terms other = {"other", 1, "f00", "sm_90", "NVIDIA H200", 1};
  submissions[3].evaluations = {evaluated(Verdict::accepted, other)};
  CHECK(places_in_queue(submissions, {}, none) == std::map<int, int>{{6, 0}});  // for the other
  CHECK(places_in_queue({submissions[5]}, {"softmax"}, none).empty());
  CHECK(places_in_queue({submissions[5]}, {"softmax", "new"}, none).size() == 1);
}
