// SPDX-License-Identifier: Apache-2.0
#include "replay/plan.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "error.h"
#include "replay/draw.h"

using namespace kjudge;

namespace {

Shape shape_with(std::vector<int> counts) {
  Shape shape;
  shape.name = "s";
  for (std::size_t i = 0; i < counts.size(); ++i) {
    shape.regimes.push_back({cat("regime ", i), counts[i], {}});
  }
  return shape;
}

int baseline_first(const std::vector<std::vector<PlannedPair>>& plan, std::size_t regime) {
  int difference = 0;
  for (const auto& round : plan) {
    for (const PlannedPair& pair : round) {
      if (pair.regime != regime) continue;
      difference += pair.first == ArmName::baseline ? 1 : -1;
    }
  }
  return difference;
}

}  // namespace

TEST_CASE("orders balance in every regime, whatever the seed") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto plan = plan_pairs(shape_with({3, 2}), 6, 5, seed);
    REQUIRE(plan.size() == 6);
    for (const auto& round : plan) {
      REQUIRE(round.size() == 5);
      std::map<std::size_t, int> counts;
      for (const PlannedPair& pair : round) ++counts[pair.regime];
      CHECK(counts[0] == 3);
      CHECK(counts[1] == 2);
    }
    CHECK(baseline_first(plan, 0) == 0);  // 18 pairs
    CHECK(baseline_first(plan, 1) == 0);  // 12
  }
}

TEST_CASE("an odd number of pairs is out of balance by one") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CHECK(std::abs(baseline_first(plan_pairs(shape_with({5}), 1, 5, seed), 0)) == 1);
    CHECK(std::abs(baseline_first(plan_pairs(shape_with({5}), 3, 7, seed), 0)) == 1);
  }
}

TEST_CASE("fewer pairs than the counts still come to every regime") {
  const auto plan = plan_pairs(shape_with({3, 2}), 5, 1, 7);
  std::map<std::size_t, int> counts;
  for (const auto& round : plan) ++counts[round.at(0).regime];
  CHECK(counts[0] == 3);
  CHECK(counts[1] == 2);
}

TEST_CASE("the same seed gives the same plan, another seed another order") {
  const auto order = [](std::uint64_t seed, const char* shape_name) {
    Shape shape = shape_with({3, 2});
    shape.name = shape_name;
    std::string text;
    for (const auto& round : plan_pairs(shape, 6, 5, seed)) {
      for (const PlannedPair& pair : round) {
        text += cat(pair.regime, pair.first == ArmName::baseline ? "b " : "s ");
      }
    }
    return text;
  };
  CHECK(order(1, "s") == order(1, "s"));
  std::set<std::string> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) different.insert(order(seed, "s"));
  CHECK(different.size() == 20);
  CHECK(order(1, "s") != order(1, "t"));
}

TEST_CASE("rounds come in every combination of start order and slot") {
  std::set<std::pair<ArmName, std::size_t>> seen;
  std::set<ArmName> first_of_all;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto plan = plan_rounds(6, seed);
    REQUIRE(plan.size() == 6);
    seen.clear();
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(plan[i].slot[0] + plan[i].slot[1] == 1);
      seen.insert({plan[i].started_first, plan[i].slot[0]});
    }
    CHECK(seen.size() == 4);
    first_of_all.insert(plan[0].started_first);
  }
  CHECK(first_of_all.size() == 2);
}

TEST_CASE("draws are those of the published SplitMix64") {
  Draw draw(1234567);
  CHECK(draw.next() == 6457827717110365317u);
  CHECK(draw.next() == 3203168211198807973u);
  CHECK(draw.next() == 9817491932198370423u);
  std::vector<int> items = {0, 1, 2, 3, 4, 5, 6, 7};
  draw.shuffle(items);
  CHECK(std::set<int>(items.begin(), items.end()).size() == 8);
}
