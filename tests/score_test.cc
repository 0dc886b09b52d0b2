// SPDX-License-Identifier: Apache-2.0
#include "score/score.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "error.h"
#include "evaluations.h"
#include "score/rank.h"
#include "stats.h"

using namespace kjudge;

namespace {

using Ratio = std::function<double(int round, int pair)>;

ShapeFacts shape_of(const std::string& name, const Ratio& ratio) {
  return evaluations::shape(name, ratio);
}
Evaluation evaluation_of(std::vector<ShapeFacts> shapes) {
  return evaluations::accepted(std::move(shapes));
}

Entry entry(const std::string& run, double speedup, double low, double high) {
  Score score;
  score.ranked = true;
  score.speedup = speedup;
  score.interval = {low, high};
  return {run + "-1", run, score};
}

std::string table(const Standings& standings) {
  std::string text;
  for (const RankedEntry& row : standings.ranked) {
    text += cat(text.empty() ? "" : ", ", row.entry.run, " ", row.rank, " ", row.tie_group);
  }
  return text;
}

}  // namespace

TEST_CASE("a shape's speedup is the median of its 30 ratios, its interval spans 6 round medians") {
  // Ratios 1.00 .. 1.29: medians of the rounds 1.02, 1.07, ... 1.27.
  const Score one = score(evaluation_of(
      {shape_of("s", [](int round, int pair) { return 1 + (round * 5 + pair) / 100.0; })}));
  CHECK(one.ranked);
  CHECK(one.why_not.empty());
  REQUIRE(one.shapes.size() == 1);
  CHECK(one.shapes[0].speedup == doctest::Approx(1.145));
  CHECK(one.shapes[0].interval.low == doctest::Approx(1.02));
  CHECK(one.shapes[0].interval.high == doctest::Approx(1.27));
  CHECK(one.speedup == one.shapes[0].speedup);
  CHECK(one.interval.low == one.shapes[0].interval.low);
  CHECK(one.shapes[0].submission_ns == 1e6);
  CHECK(one.shapes[0].baseline_ns == doctest::Approx(1.145e6));
}

TEST_CASE("the score is the geometric mean of the shapes, its interval that of the rounds") {
  // Opposite trends cancel round by round, so the score's interval is narrow; it holds the score.
  const Score both =
      score(evaluation_of({shape_of("up", [](int round, int) { return std::exp2(round); }),
                           shape_of("down", [](int round, int) { return std::exp2(7 - round); })}));
  CHECK(both.ranked);
  CHECK(both.speedup == doctest::Approx(std::sqrt(6.0 * 24.0)));  // medians of 4, 8 and 16, 32
  CHECK(both.interval.low == doctest::Approx(std::exp2(3.5)));
  CHECK(both.rounds.size() == 6);
  CHECK(*std::max_element(both.rounds.begin(), both.rounds.end()) ==
        doctest::Approx(std::exp2(3.5)));
  CHECK(both.interval.high == both.speedup);
  CHECK(both.shapes[0].interval.high == 32);
}

TEST_CASE("an arm's time is the median of its replays") {
  ShapeFacts shape = shape_of("s", [](int, int) { return 2.0; });
  for (RoundFacts& round : shape.rounds) {
    for (Pair& pair : round.pairs) {
      for (ArmTimes& arm : pair.arms) {
        arm.replays.push_back({9e9, 9e9, 9e9, 9e9});
        arm.replays.push_back(arm.replays.front());
      }
    }
  }
  CHECK(score(evaluation_of({shape})).speedup == 2);
}

TEST_CASE("every regime counts the same, however few its pairs") {
  // 4 nominal pairs at 4, one large pair at 1: the median alone would be 4.
  ShapeFacts shape = shape_of("s", [](int, int pair) { return pair == 2 ? 1.0 : 4.0; });
  for (RoundFacts& round : shape.rounds) round.pairs[2].regime = "large";
  const Score two = score(evaluation_of({shape}));
  CHECK(two.ranked);
  CHECK(two.speedup == 2);
  CHECK(two.interval.low == 2);
  CHECK(two.interval.high == 2);
  shape.rounds[3].pairs[2].regime = "nominal";
  CHECK(score(evaluation_of({shape})).why_not == "shape s: a regime is missing in round 4");
}

TEST_CASE("what is not complete and right is not ranked") {
  const auto right = [] { return shape_of("s", [](int, int) { return 2.0; }); };
  ShapeFacts shape = right();
  shape.rounds.pop_back();
  CHECK(score(evaluation_of({right(), shape})).why_not == "shape s: 5 of 6 rounds");
  CHECK(score(evaluation_of({right(), shape})).speedup == 2);
  shape = right();
  shape.rounds[1].pairs.pop_back();
  CHECK(score(evaluation_of({shape})).why_not == "shape s: 4 of 5 pairs in round 2");
  shape = right();
  shape.rounds.clear();
  CHECK(score(evaluation_of({shape})).why_not == "shape s: no pairs");
  CHECK(score(evaluation_of({shape})).shapes.empty());
  shape = right();
  shape.verdict = Verdict::wrong_result;
  CHECK(score(evaluation_of({right(), shape})).why_not == "shape s: wrong_result");
  ShapeFacts test = right();
  test.name = "t";
  test.timed = false;
  test.rounds.clear();
  CHECK(score(evaluation_of({right(), test})).ranked);
  CHECK(score(evaluation_of({test})).why_not == "no timed shape");
  test.verdict = Verdict::gpu_fault;
  CHECK(score(evaluation_of({right(), test})).why_not == "test t: gpu_fault");
  CHECK(score(evaluation_of({right(), right()})).why_not == "shape s is there twice");
  Evaluation newer = evaluation_of({right()});
  newer.method = kMethod + 1;
  CHECK(score(newer).why_not == cat("method ", kMethod + 1, " is newer than this kjudge"));
  Evaluation refused = evaluation_of({right()});
  refused.verdict = Verdict::refused;
  CHECK(score(refused).why_not == "the verdict is refused");
  CHECK(!score(refused).ranked);
}

TEST_CASE("a time that is no time never becomes a score") {
  for (double time : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (std::size_t arm : {0, 1}) {
      ShapeFacts shape = shape_of("s", [](int, int) { return 2.0; });
      Clocks& clocks = shape.rounds[2].pairs[1].arms[arm].replays[0];
      (arm == 0 ? clocks.event_ns : clocks.stamp_ns) = time;
      const Score broken = score(evaluation_of({shape}));
      CHECK(broken.why_not == "shape s: a pair has a time that is not above 0");
      CHECK(broken.shapes.empty());
    }
  }
  for (double time : {5e-324, 1e308}) {
    ShapeFacts shape = shape_of("s", [](int, int) { return 2.0; });
    shape.rounds[2].pairs[1].arms[0].replays[0].event_ns = time;
    const Score broken = score(evaluation_of({shape}));
    CHECK(broken.why_not == "shape s: a pair has a time that is not between 0.001 ns and a day");
    CHECK(broken.shapes.empty());
  }
  ShapeFacts shape = shape_of("s", [](int, int) { return 2.0; });
  shape.rounds[2].pairs[1].arms[0].replays.clear();
  CHECK(score(evaluation_of({shape})).why_not == "shape s: a pair has no times");
}

TEST_CASE("faster than the floor is flagged and still counts") {
  ShapeFacts shape = shape_of("s", [](int, int) { return 2.0; });
  shape.floor_ns = 1e6;
  CHECK(!score(evaluation_of({shape})).shapes[0].below_floor);
  shape.floor_ns = 1.1e6;
  const Score flagged = score(evaluation_of({shape}));
  CHECK(flagged.shapes[0].below_floor);
  CHECK(flagged.ranked);
}

TEST_CASE("of several devices each has its speedup; the score is the first one's, not the best") {
  const auto times = [](double ratio) {
    return shape_of("s", [=](int round, int) { return ratio + round / 100.0; });
  };
  Evaluation judged = evaluation_of({times(2.00)});
  CHECK(score(judged).devices.empty());
  judged.others = {{"second", Verdict::accepted, "", {times(2.04)}}};
  Score made = score(judged);
  CHECK(made.ranked);
  CHECK(made.speedup == doctest::Approx(2.025));
  REQUIRE(made.devices.size() == 2);
  CHECK(made.devices[0].device == judged.device);
  CHECK(made.devices[0].speedup == made.speedup);
  CHECK(made.devices[1].device == "second");
  CHECK(made.devices[1].speedup == doctest::Approx(2.065));
  CHECK(made.devices[1].interval.low == doctest::Approx(2.04));
  CHECK(made.devices_agree);  // 2.00 to 2.05 and 2.04 to 2.09
  judged.others.push_back({"third", Verdict::accepted, "", {times(2.06)}});
  made = score(judged);  // overlaps the second, not the first
  CHECK_FALSE(made.devices_agree);
  CHECK(made.ranked);
  CHECK(made.speedup == doctest::Approx(2.025));
}

TEST_CASE("what is not right and complete on every device is not ranked") {
  const auto right = [] { return shape_of("s", [](int, int) { return 2.0; }); };
  Evaluation judged = evaluation_of({right()});
  judged.others = {{"second", Verdict::accepted, "", {right()}}};
  judged.others[0].shapes[0].rounds.pop_back();
  CHECK(score(judged).why_not == "on second: shape s: 5 of 6 rounds");
  judged.others[0] = {"second", Verdict::wrong_result, "y is wrong", {}};
  CHECK(score(judged).why_not == "on second: the verdict is wrong_result");
  CHECK(score(judged).devices.size() == 1);
}

TEST_CASE("a device that judged other shapes than the first ranks nothing") {
  const auto named = [](const char* name) { return shape_of(name, [](int, int) { return 2.0; }); };
  Evaluation judged = evaluation_of({named("s"), named("t")});
  judged.device = "first";
  judged.others = {{"second", Verdict::accepted, "", {named("s"), named("t")}}};
  CHECK(score(judged).ranked);
  for (const auto& shapes : {std::vector{named("s")}, std::vector{named("s"), named("u")},
                             std::vector{named("s"), named("t"), named("u")}}) {
    judged.others[0].shapes = shapes;
    CHECK(score(judged).why_not == "on second: other shapes than on first");
  }
}

TEST_CASE("the speed of light is the floor by the submission's time, of each shape that has one") {
  ShapeFacts shape = shape_of("s", [](int, int) { return 2.0; });
  CHECK_FALSE(score(evaluation_of({shape})).shapes[0].speed_of_light.has_value());
  shape.floor_ns = 0.9e6;
  CHECK(*score(evaluation_of({shape})).shapes[0].speed_of_light == doctest::Approx(0.9));
}

// Rounds differ by more than pairs within one do, and the noise is skewed. The interval of 6 round
// medians holds their median unless all 6 fall on one side: 1 - 2/64.
TEST_CASE("the interval holds the true value with 96.9 %, also where rounds differ") {
  std::mt19937_64 draw(20250131);
  std::normal_distribution<double> normal;
  const int trials = 4000;
  for (double between : {0.0, 0.04}) {
    int held = 0;
    std::vector<double> medians, lows, highs;
    for (int trial = 0; trial < trials; ++trial) {
      double shift[kRounds];
      for (double& s : shift) s = between * normal(draw);
      const Score made = score(evaluation_of({shape_of("s", [&](int round, int) {
        const double noise = normal(draw);
        return std::exp(shift[round] + 0.02 * (noise > 0 ? 3 * noise : noise));
      })}));
      lows.push_back(made.interval.low);
      highs.push_back(made.interval.high);
      for (int i = 0; i < 8; ++i) {
        double ratios[kPairsPerRound];
        const double s = between * normal(draw);
        for (double& ratio : ratios) {
          const double noise = normal(draw);
          ratio = std::exp(s + 0.02 * (noise > 0 ? 3 * noise : noise));
        }
        medians.push_back(median(ratios));
      }
    }
    const double truth = median(medians);
    for (int i = 0; i < trials; ++i) held += lows[i] <= truth && truth <= highs[i];
    const double coverage = held / double(trials);
    CAPTURE(between);
    CHECK(coverage > 0.96875 - 0.011);  // 4 standard errors
    CHECK(coverage < 0.96875 + 0.011);
  }
}

TEST_CASE("the interval holds the speedup even where rounds disagree about which regime is fast") {
  // Regimes a and b are 1 and 4 in even rounds, 4 and 1 in odd ones: 2 in every round, 2.5 over
  // all.
  ShapeFacts shape =
      shape_of("s", [](int round, int pair) { return (pair < 3) == (round % 2 == 0) ? 1.0 : 4.0; });
  for (RoundFacts& round : shape.rounds) {
    for (std::size_t p = 0; p < round.pairs.size(); ++p) {
      round.pairs[p].regime = p < 3 ? "a" : "b";
    }
  }
  const ShapeScore scored = score(evaluation_of({shape})).shapes.at(0);
  CHECK(scored.regime_medians == std::vector<double>{2.5, 2.5});
  CHECK(scored.rounds == std::vector<double>(6, 2.0));
  CHECK(scored.speedup == 2.5);
  CHECK(scored.interval.low == 2);
  CHECK(scored.interval.high == 2.5);
}

TEST_CASE(
    "swapped arms give the reciprocal; the order of pairs and the unit of time give nothing") {
  std::mt19937_64 draw(5);
  std::normal_distribution<double> noise(0.1, 0.05);
  const ShapeFacts shape = shape_of("s", [&](int, int) { return std::exp(noise(draw)); });
  const Score as_is = score(evaluation_of({shape}));

  ShapeFacts swapped = shape, shuffled = shape, slower = shape;
  for (RoundFacts& round : swapped.rounds) {
    for (Pair& pair : round.pairs) std::swap(pair.arms[0], pair.arms[1]);
  }
  for (RoundFacts& round : shuffled.rounds) {
    std::shuffle(round.pairs.begin(), round.pairs.end(), draw);
  }
  std::reverse(shuffled.rounds.begin(), shuffled.rounds.end());
  for (RoundFacts& round : slower.rounds) {
    for (Pair& pair : round.pairs) {
      for (ArmTimes& arm : pair.arms) arm.replays[0].event_ns *= 1024;
    }
  }
  // The median of an even number is the mean of two, whose reciprocal is not that of theirs.
  const Score other = score(evaluation_of({swapped}));
  CHECK(other.speedup == doctest::Approx(1 / as_is.speedup).epsilon(1e-3));
  CHECK(other.interval.low == doctest::Approx(1 / as_is.interval.high));
  CHECK(other.interval.high == doctest::Approx(1 / as_is.interval.low));
  for (const ShapeFacts& same : {shuffled, slower}) {
    const Score score_of = score(evaluation_of({same}));
    CHECK(score_of.speedup == as_is.speedup);
    CHECK(score_of.interval.low == as_is.interval.low);
    CHECK(score_of.interval.high == as_is.interval.high);
  }
}

TEST_CASE("the speedup is no value of one pair: a fifth of wild ones moves it little") {
  const auto wild = [](int round, int pair) { return pair == round % 5 ? 50.0 : 1 + pair / 100.0; };
  const Score scored = score(evaluation_of({shape_of("s", wild)}));
  CHECK(scored.speedup < 1.04);
  CHECK(scored.interval.high < 1.04);
}

TEST_CASE("rank: best first, in tie groups with the best of each") {
  CHECK(table(rank({entry("a", 2.0, 1.9, 2.1), entry("b", 3.0, 2.8, 3.1),
                    entry("c", 2.9, 2.7, 3.0)})) == "b 1 1, c 1 1, a 3 2");
  CHECK(rank({}).ranked.empty());
}

TEST_CASE("rank: a group is no chain") {
  // b overlaps a, c overlaps b but not a: c opens the next group, d joins it.
  CHECK(table(rank({entry("a", 4, 3.8, 4.2), entry("b", 3.7, 3.4, 3.9), entry("c", 3.3, 3.0, 3.6),
                    entry("d", 3.1, 2.9, 3.2)})) == "a 1 1, b 1 1, c 3 2, d 3 2");
}

TEST_CASE("rank: groups follow the order of speedups") {
  // The wide c overlaps a, but stands below b, which does not.
  CHECK(table(rank({entry("a", 4, 3.8, 4.2), entry("b", 3, 2.9, 3.1), entry("c", 2.5, 1, 9)})) ==
        "a 1 1, b 2 2, c 2 2");
}

TEST_CASE("rank: touching intervals overlap, equal speedups go by name, others are left out") {
  CHECK(table(rank({entry("b", 2, 1.9, 2.1), entry("a", 2, 2.1, 2.2)})) == "a 1 1, b 1 1");
  Entry out = entry("z", 9, 9, 9);
  out.score.ranked = false;
  CHECK(table(rank({out, entry("a", 2, 1.9, 2.1)})) == "a 1 1");
}
