// SPDX-License-Identifier: Apache-2.0
#include "judge/noise.h"

#include <doctest/doctest.h>

#include <cmath>

#include "evaluations.h"

using namespace kjudge;

namespace {

Evaluation of(const std::function<double(int round, int pair)>& ratio) {
  return evaluations::accepted({evaluations::shape("copy", ratio)});
}

}  // namespace

TEST_CASE("noise: the errors are those of the evaluations' speedups") {
  std::vector<Evaluation> judged;
  for (int i = 0; i <= 20; ++i) {
    judged.push_back(of([=](int, int) { return 1 + i / 1000.0; }));
  }
  const std::vector<Noise> noise = noise_of(judged);
  REQUIRE(noise.size() == 1);
  CHECK(noise[0].shape == "copy");
  CHECK(noise[0].error_median == doctest::Approx(0.010));
  CHECK(noise[0].error_95 == doctest::Approx(0.019));
  CHECK(noise[0].time_ns == doctest::Approx(1.01e6));
  CHECK(noise[0].width == doctest::Approx(0));
  CHECK(noise[0].holds_1 == doctest::Approx(1.0 / 21));
  CHECK(noise[0].within == doctest::Approx(0));
  CHECK(*noise[0].between == doctest::Approx(0));
  CHECK(noise[0].voids == 0);
}

TEST_CASE("noise: an error below 1 counts as one above") {
  CHECK(noise_of({of([](int, int) { return 0.98; })})[0].error_median == doctest::Approx(0.02));
}

TEST_CASE("noise: what differs within rounds is told from what differs between them") {
  // -2, -1, 0, 1, 2 % in every round: variance 2.5e-4 within, and no two rounds differ.
  const Noise within =
      noise_of({of([](int, int pair) { return std::exp((pair - 2) / 100.0); })})[0];
  CHECK(within.within == doctest::Approx(std::sqrt(2.5e-4)));
  CHECK(*within.between == doctest::Approx(0));
  CHECK(within.width == doctest::Approx(0));
  CHECK(within.holds_1 == 1);
  // The rounds' means are -2.5 to 2.5 %: variance 3.5e-4.
  const Noise between =
      noise_of({of([](int round, int) { return std::exp((round - 2.5) / 100.0); })})[0];
  CHECK(between.within == doctest::Approx(0));
  CHECK(*between.between == doctest::Approx(std::sqrt(3.5e-4)));
  // Both: that of the means is 3.5e-4, of which a fifth of 2.5e-4 is explained.
  const Noise both = noise_of({of([](int round, int pair) {
    return std::exp((round - 2.5) / 100.0 + (pair - 2) / 100.0);
  })})[0];
  CHECK(both.within == doctest::Approx(std::sqrt(2.5e-4)));
  CHECK(*both.between == doctest::Approx(std::sqrt(3.0e-4)));
}

TEST_CASE("noise: one round has no spread of rounds, one pair none within") {
  Evaluation one = of([](int, int pair) { return 1 + pair / 100.0; });
  one.shapes[0].rounds.resize(1);
  CHECK_FALSE(noise_of({one})[0].between.has_value());
  one.shapes[0].rounds[0].pairs.resize(1);
  one.shapes[0].rounds[0].pairs[0].voids = 2;
  CHECK(noise_of({one})[0].within == 0);
  CHECK(noise_of({one})[0].voids == 2);
}

TEST_CASE("noise: each shape has its own, tests have none") {
  ShapeFacts test;
  test.name = "test";
  test.timed = false;
  const auto noise =
      noise_of({evaluations::accepted({test, evaluations::shape("a", [](int, int) { return 1.0; }),
                                       evaluations::shape("b", [](int, int) { return 2.0; })})});
  REQUIRE(noise.size() == 2);
  CHECK(noise[0].shape == "a");
  CHECK(noise[0].error_median == doctest::Approx(0));
  CHECK(noise[1].shape == "b");
  CHECK(noise[1].error_median == doctest::Approx(1));
}
