// SPDX-License-Identifier: Apache-2.0
#include "score/modes.h"

#include <doctest/doctest.h>

#include <random>

using namespace kjudge;

namespace {

std::vector<double> normal(std::size_t count, double mean, double deviation, unsigned seed) {
  std::mt19937_64 draw(seed);
  std::normal_distribution<double> noise(mean, deviation);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(noise(draw));
  return values;
}

std::vector<double> together(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("two modes are found where times lie around two values") {
  const auto modes =
      find_two_modes({together(normal(20, 10e3, 60, 1), normal(10, 11e3, 60, 2))}, 32);
  REQUIRE(modes.has_value());
  CHECK(modes->low_ns == doctest::Approx(10e3).epsilon(0.01));
  CHECK(modes->high_ns == doctest::Approx(11e3).epsilon(0.01));
  CHECK(modes->low_count == 20);
  CHECK(modes->high_count == 10);
}

TEST_CASE("two modes: groups without any spread") {
  std::vector<double> times(15, 1000);
  times.resize(30, 2000);
  const auto modes = find_two_modes({times}, 0);
  REQUIRE(modes.has_value());
  CHECK(modes->low_ns == doctest::Approx(1000));
  CHECK(modes->high_ns == doctest::Approx(2000));
  CHECK_FALSE(find_two_modes({std::vector<double>(30, 1000)}, 0).has_value());
}

TEST_CASE("one mode is not two: wide, uniform, with a few outliers, or few") {
  std::mt19937_64 draw(3);
  std::uniform_real_distribution<double> flat(900, 1100);
  int found = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::vector<double> uniform;
    for (int i = 0; i < 24; ++i) uniform.push_back(flat(draw));
    found += find_two_modes({uniform}, 0).has_value() ? 1 : 0;
    found += find_two_modes({normal(24, 1000, 100, seed)}, 0).has_value() ? 1 : 0;
  }
  CHECK(found <= 10);
  CHECK_FALSE(find_two_modes({together(normal(26, 1000, 5, 4), normal(4, 1500, 5, 5))}, 0));
  CHECK_FALSE(find_two_modes({together(normal(11, 1000, 5, 4), normal(12, 1500, 5, 5))}, 0));
}

TEST_CASE("two modes: steps of the clock, and what nobody cares about, are none") {
  std::vector<double> ticks(15, 5024);
  ticks.resize(30, 5088);  // two ticks, 1.3 %
  CHECK_FALSE(find_two_modes({ticks}, 32).has_value());
  CHECK(find_two_modes({ticks}, 16).has_value());
  std::vector<double> close(15, 1e6);
  close.resize(30, 1.005e6);
  CHECK_FALSE(find_two_modes({close}, 32).has_value());
}

TEST_CASE("two modes: that regimes differ makes none, and hides none") {
  const auto fast = normal(24, 1000, 5, 6), slow = normal(24, 3000, 15, 7);
  CHECK_FALSE(find_two_modes({fast, slow}, 0).has_value());
  const auto two = together(normal(14, 1000, 5, 8), normal(10, 1100, 5, 9));
  CHECK(find_two_modes({two, slow}, 0).has_value());
}
