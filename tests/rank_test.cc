// SPDX-License-Identifier: Apache-2.0
#include "score/rank.h"

#include <doctest/doctest.h>

#include "error.h"
#include "evaluations.h"

using namespace kjudge;

namespace {

Entry entry(const std::string& run, double speedup, double low, double high, int judged = 1) {
  Entry entry;
  entry.run = run;
  entry.submission = run + "-1";
  entry.id = run;
  entry.judged = judged;
  entry.score.ranked = true;
  entry.score.speedup = speedup;
  entry.score.interval = {low, high};
  return entry;
}

PlayedOff::Other against_best(const std::string& id, double speedup, double low, double high) {
  return {id, entry(id, speedup, low, high).score};
}

std::string rows(const Standings& standings) {
  std::string text;
  for (const RankedEntry& row : standings.ranked) {
    text += cat(text.empty() ? "" : ", ", row.entry.run, " ", row.rank, " ", row.tie_group,
                row.played_off ? " played" : "");
  }
  for (const Entry& one : standings.pending) text += cat("; ", one.run);
  return text;
}

}  // namespace

TEST_CASE("choose_best: the last valid evaluation of a submission, the best submission of a run") {
  std::vector<Candidate> candidates = {
      {1, 1, "ada", "a", true, false, 9},  {1, 2, "ada", "b", true, false, 2},
      {2, 1, "ada", "c", true, false, 1},  {3, 1, "ben", "d", true, false, 3},
      {3, 2, "ben", "e", true, true, 8},   {4, 1, "cyd", "f", true, false, 5},
      {4, 2, "cyd", "g", false, false, 0}, {5, 1, "dan", "h", true, true, 7},
      {6, 1, "eve", "i", true, false, 4},  {6, 2, "eve", "i", true, false, 4}};
  constexpr const char* kFiles[] = {"", "1", "2", "3", "4", "5", "6"};
  for (Candidate& one : candidates) one.sha256 = kFiles[one.submission];
  const auto chosen = choose_best(candidates);
  REQUIRE(chosen.size() == 3);
  CHECK(chosen[0].candidate == 1);  // ada: not the luckier of two times
  CHECK(chosen[0].judged == 2);
  CHECK(chosen[1].candidate == 3);  // ben: what is invalid does not count, nor as a judging
  CHECK(chosen[1].judged == 1);
  CHECK(chosen[2].candidate == 9);  // eve: a copy is no second judging
  CHECK(chosen[2].judged == 1);
  CHECK(choose_best({}).empty());
}

TEST_CASE("choose_best: copies of a run are judged like one, not until one of them is lucky") {
  const auto of = [](int submission, int evaluation, const char* run, const char* id,
                     double speedup, const char* started, const char* sha256) {
    return Candidate{submission, evaluation, run,    id, true, false,
                     speedup,    started,    sha256, "", ""};
  };
  std::vector<Candidate> candidates = {of(1, 1, "ada", "lucky", 2.0, "10:00", "same"),
                                       of(1, 2, "ada", "again", 1.8, "11:00", "same"),
                                       of(2, 1, "ada", "lucky", 2.0, "10:00", "same"),
                                       of(3, 1, "ada", "other", 1.7, "12:00", "else"),
                                       of(4, 1, "ben", "lucky", 2.0, "10:00", "same")};
  auto chosen = choose_best(candidates);
  REQUIRE(chosen.size() == 2);
  CHECK(chosen[0].candidate == 1);
  CHECK(chosen[0].judged == 2);
  CHECK(chosen[1].candidate == 4);
  CHECK(chosen[1].judged == 1);
  // What does not count for one may count for its copy.
  candidates[1].invalid = true;
  CHECK(choose_best(candidates)[0].candidate == 0);
  candidates[0].invalid = true;
  CHECK(choose_best(candidates)[0].candidate == 2);
  // Of another part of the challenge it is another content.
  candidates[1].invalid = false;
  candidates[2].dtype = "float32";
  CHECK(choose_best(candidates)[0].candidate == 2);
}

TEST_CASE("rank: of equal scores the earlier submission stands first, whatever its run is called") {
  Entry original = entry("zoe", 2, 1, 3), copy = entry("..", 2, 1, 3);
  original.submission = "9";
  copy.submission = "10";
  CHECK(rows(rank({copy, original})) == "zoe 1 1, .. 1 1");
}

TEST_CASE("rank: who is above the first that was judged twice is pending") {
  CHECK(rows(rank({entry("a", 4, 3.9, 4.1), entry("b", 3, 2.9, 3.1, 2), entry("c", 5, 4, 6),
                   entry("d", 2, 1, 2.5)})) == "b 1 1, d 2 2; c; a");
  CHECK(rows(rank({entry("a", 4, 3.9, 4.1, 2), entry("b", 3, 2.9, 3.1)})) == "a 1 1, b 2 2");
  CHECK(rows(rank({entry("a", 4, 3.9, 4.1), entry("b", 3, 2.9, 3.1)})) == "a 1 1, b 2 2");
}

TEST_CASE("rank: a play-off orders its group and may leave smaller ones") {
  const std::vector<Entry> entries = {entry("a", 4, 3, 5), entry("b", 3.9, 3, 5),
                                      entry("c", 3.8, 3, 5), entry("d", 2, 1.9, 2.1)};
  CHECK(rows(rank(entries)) == "a 1 1, b 1 1, c 1 1, d 4 2");
  const PlayedOff all{"a", {against_best("b", 0.9, 0.8, 0.95), against_best("c", 1.1, 1.05, 1.2)}};
  CHECK(rows(rank(entries, {all})) == "c 1 1 played, a 2 2 played, b 3 3 played, d 4 4");
  // Undecided between a and b.
  const PlayedOff half{"a", {against_best("b", 0.99, 0.9, 1), against_best("c", 1.1, 1.05, 1.2)}};
  CHECK(rows(rank(entries, {all, half})) == "c 1 1 played, a 2 2 played, b 2 2 played, d 4 3");
  // The last of them counts.
  CHECK(rows(rank(entries, {half, all})) == "c 1 1 played, a 2 2 played, b 3 3 played, d 4 4");
}

TEST_CASE("rank: a play-off that not all of a group took part in orders nobody") {
  const std::vector<Entry> entries = {entry("a", 4, 3, 5), entry("b", 3.9, 3, 5),
                                      entry("c", 3.8, 3, 5)};
  CHECK(rows(rank(entries, {{"a", {against_best("b", 0.5, 0.4, 0.6)}}})) == "a 1 1, b 1 1, c 1 1");
  // Of other shapes than these.
  PlayedOff part{"a", {against_best("b", 0.5, 0.4, 0.6), against_best("c", 0.7, 0.7, 0.7)}};
  part.others[1].score.ranked = false;
  part.others[1].score.counts = true;
  CHECK(rows(rank(entries, {part})) == "a 1 1, b 1 1, c 1 1");
}

TEST_CASE(
    "rank: who could not be replayed in a play-off stands last, and the others are in order") {
  const std::vector<Entry> entries = {entry("a", 4, 3, 5), entry("b", 3.9, 3, 5),
                                      entry("c", 3.8, 3, 5), entry("d", 3.7, 3, 5)};
  const PlayedOff played{"b", {{"a", {}}, against_best("c", 1.2, 1.1, 1.3), {"d", {}}}};
  CHECK(rows(rank(entries, {played})) == "c 1 1 played, b 2 2 played, a 3 3 played, d 3 3 played");
}

TEST_CASE("part_of: a score over some of the shapes, its interval by round") {
  const auto ratio = [](double base) {
    return [base](int round, int) { return base * (1 + 0.01 * round); };
  };
  const Score whole = score(
      evaluations::accepted({evaluations::shape("a", ratio(2)), evaluations::shape("b", ratio(8)),
                             evaluations::shape("c", ratio(1))}));
  REQUIRE(whole.ranked);
  const Score part = part_of(whole, {"b", "a"});
  CHECK(part.ranked);
  REQUIRE(part.shapes.size() == 2);
  CHECK(part.shapes[0].name == "a");
  const Score alone = score(evaluations::accepted(
      {evaluations::shape("a", ratio(2)), evaluations::shape("b", ratio(8))}));
  CHECK(part.speedup == alone.speedup);
  CHECK(part.interval.low == alone.interval.low);
  CHECK(part.interval.high == alone.interval.high);
  CHECK(part_of(whole, {"a", "b", "c"}).speedup == whole.speedup);
  CHECK(!part_of(whole, {"z"}).ranked);
  CHECK(part_of(whole, {"z"}).why_not != "");
  Evaluation failed = evaluations::accepted({evaluations::shape("a", ratio(2))});
  failed.verdict = Verdict::wrong_result;
  CHECK(!part_of(score(failed), {"a"}).ranked);
}

TEST_CASE("a score of part of the challenge is ranked where all shapes of the variant are there") {
  const auto twice = [](int, int) { return 2.0; };
  Evaluation asked =
      evaluations::accepted({evaluations::shape("a", twice), evaluations::shape("b", twice)});
  asked.variant = parse_request("softmax:float32");
  const Score some = score(asked);
  CHECK(some.counts);
  CHECK(!some.ranked);
  CHECK(some.why_not == "only softmax:float32 was asked for");
  CHECK(some.speedup == 2);
  CHECK(part_of(some, {"a", "b"}).ranked);
  CHECK(part_of(some, {"b"}).ranked);
  const Score more = part_of(some, {"a", "b", "c"});
  CHECK(!more.ranked);
  CHECK(more.why_not == "not all shapes of this variant were asked for");
  asked.verdict = Verdict::wrong_result;
  CHECK(!score(asked).counts);
  CHECK(!part_of(score(asked), {"a"}).ranked);
}

TEST_CASE("target_met: the geometric mean of the submission's times") {
  Score score;
  CHECK(!target_met(5, score));
  score.shapes = {{"a", 1, 2}, {"b", 1, 8}};
  CHECK(!target_met(std::nullopt, score));
  CHECK(target_met(4.0001, score) == true);
  CHECK(target_met(3.9999, score) == false);
}

TEST_CASE("choose_best: of copies that were judged in one second the same one counts everywhere") {
  for (const char* first : {"a", "b"}) {
    const std::vector<Candidate> candidates = {
        {1, 1, "ada", first, true, false, 9, "2025-01-31T12:00:00Z", "f", "", ""},
        {2, 1, "ada", *first == 'a' ? "b" : "a", true, false, 9, "2025-01-31T12:00:00Z", "f", "",
         ""}};
    const auto chosen = choose_best(candidates);
    REQUIRE(chosen.size() == 1);
    CHECK(candidates[chosen[0].candidate].id == "b");
  }
}
