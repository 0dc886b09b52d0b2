// SPDX-License-Identifier: Apache-2.0
#include "replay/timing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

using namespace kjudge;

namespace {

// 6 rounds of 5 pairs; `clocks` makes one replay of an arm.
ShapeFacts facts_of(const std::function<Clocks(ArmName, int round)>& clocks, int rounds = 6) {
  ShapeFacts facts;
  facts.name = "s";
  for (int r = 0; r < rounds; ++r) {
    RoundFacts round;
    round.clock_tick_ns = 32;
    for (int p = 0; p < 5; ++p) {
      Pair pair;
      for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
        pair.arms[static_cast<std::size_t>(arm)].replays.push_back(clocks(arm, r));
      }
      round.pairs.push_back(pair);
    }
    facts.rounds.push_back(round);
  }
  return facts;
}

}  // namespace

TEST_CASE("medians") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({4, 1}) == 2.5);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({9, 1, 5, 7}) == 6);
  CHECK(robust_deviation({5, 5, 5, 5}) == 0);
  CHECK(robust_deviation({1, 2, 3, 4, 1000}) == doctest::Approx(1.4826));
}

TEST_CASE(
    "the time of an arm is the median event time of its replays, the ratio baseline's over "
    "submission's") {
  Pair pair;
  for (const double ns : {100.0, 400.0, 200.0}) pair.arms[0].replays.push_back({ns, ns, ns, ns});
  pair.arms[1].replays.push_back({50, 60, 70, 80});
  CHECK(pair.arms[0].time_ns() == 200);
  CHECK(pair.ratio() == 4);
}

TEST_CASE("short shapes are replayed more often") {
  CHECK(replays_per_arm(2e3) == 5);
  CHECK(replays_per_arm(29.9e3) == 5);
  CHECK(replays_per_arm(30e3) == 3);
  CHECK(replays_per_arm(299e3) == 3);
  CHECK(replays_per_arm(300e3) == 1);
  CHECK(replays_per_arm(1e9) == 1);
}

TEST_CASE("clocks in order are believed, others are not") {
  CHECK_FALSE(out_of_order({1000, 1100, 5000, 9000}, 32));
  CHECK_FALSE(out_of_order({1000, 1000, 1000, 1000}, 0));
  CHECK_FALSE(out_of_order({1030, 1000, 5000, 9000}, 32));  // within a tick
  CHECK(out_of_order({1040, 1000, 5000, 9000}, 32));
  CHECK(out_of_order({1000, 6000, 5000, 9000}, 32));
  CHECK(out_of_order({1000, 1100, 9500, 9000}, 32));
  CHECK(out_of_order({std::nan(""), 1100, 5000, 9000}, 32));
  CHECK(out_of_order({1000, std::nan(""), 5000, 9000}, 32));
  CHECK(out_of_order({-1, 1100, 5000, 9000}, 32));
  CHECK(out_of_order({1000, 1100, HUGE_VAL, HUGE_VAL}, 32));
}

TEST_CASE("equal slack passes, a shifted clock does not") {
  std::mt19937_64 random(1);
  std::normal_distribution<double> small(0, 100), large(0, 3000);
  const auto with_shift = [&](double stamp, double host, double supervisor) {
    return facts_of([&](ArmName arm, int) {
      const bool submission = arm == ArmName::submission;
      Clocks clocks;
      clocks.event_ns = submission ? 40e3 : 80e3;
      clocks.stamp_ns = clocks.event_ns + 2000 + small(random) + (submission ? stamp : 0);
      clocks.host_ns = clocks.stamp_ns + 9000 + large(random) + (submission ? host : 0);
      clocks.supervisor_ns = clocks.host_ns + 20e3 + large(random) + (submission ? supervisor : 0);
      return clocks;
    });
  };
  CHECK_FALSE(suspicious_slack(with_shift(0, 0, 0), DriverKind::cuda));
  CHECK_FALSE(suspicious_slack(with_shift(500, 500, 500), DriverKind::cuda));
  CHECK(suspicious_slack(with_shift(5000, 0, 0), DriverKind::cuda));
  CHECK(suspicious_slack(with_shift(-5000, 0, 0), DriverKind::cuda));
  CHECK(suspicious_slack(with_shift(0, 40e3, 0), DriverKind::cuda));
  CHECK(suspicious_slack(with_shift(0, 0, 40e3), DriverKind::cuda));
  CHECK_FALSE(suspicious_slack(with_shift(0, 40e3, 0), DriverKind::host));
  CHECK(suspicious_slack(with_shift(0, 1e6, 0), DriverKind::host));
  const auto few = facts_of(
      [](ArmName arm, int) {
        return arm == ArmName::baseline ? Clocks{1e3, 1e3, 1e3, 1e3} : Clocks{1e3, 9e6, 9e6, 9e6};
      },
      1);
  CHECK_FALSE(suspicious_slack(few, DriverKind::cuda));
}

// Skewed noise (waking a thread), outliers (preemption) and rounds that differ by as much as pairs
// do: none of 20,000 honest evaluations of three clocks may fail.
TEST_CASE("honest noise practically never fails the slack test") {
  std::mt19937_64 random(2);
  int failed = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::exponential_distribution<double> wake(1 / 8e3);
    std::normal_distribution<double> round_shift(0, 4e3);
    std::bernoulli_distribution preempted(0.05);
    std::array<std::array<double, 6>, 2> shift;
    for (auto& arm : shift) {
      for (double& of_round : arm) of_round = round_shift(random);
    }
    const auto facts = facts_of([&](ArmName arm, int round) {
      const auto slack = [&](double least) {
        return least + std::max(0.0, shift[static_cast<std::size_t>(arm)][round] + wake(random)) +
               (preempted(random) ? 4e6 : 0);
      };
      Clocks clocks;
      clocks.event_ns = 50e3;
      clocks.stamp_ns = clocks.event_ns + slack(1000);
      clocks.host_ns = clocks.stamp_ns + slack(5000);
      clocks.supervisor_ns = clocks.host_ns + slack(20e3);
      return clocks;
    });
    failed += suspicious_slack(facts, DriverKind::cuda) ? 1 : 0;
  }
  CHECK(failed == 0);
}

TEST_CASE("a device off its clock voids a pair, noise does not") {
  RoundClock gpu(DriverKind::cuda);
  for (int i = 0; i < 4; ++i) gpu.add(190e3, 100e3);
  gpu.add(100e3, 100e3);
  CHECK(gpu.off());  // from five samples on
  gpu.add(188e3, 100e3);
  CHECK_FALSE(gpu.off());
  gpu.add(170e3, 100e3);
  CHECK(gpu.off().value().find("89 %") != std::string::npos);

  RoundClock host(DriverKind::host);
  for (const double ns : {100e3, 101e3, 99e3, 103e3, 100e3}) host.add(0, ns);
  CHECK_FALSE(host.off());
  host.add(0, 120e3);
  CHECK_FALSE(host.off());
  host.add(0, 180e3);
  CHECK(host.off());

  RoundClock unknown(DriverKind::cuda);
  unknown.add(190e3, 100e3);
  unknown.add(90e3, 100e3);
  CHECK_FALSE(unknown.off());
  CHECK_FALSE(unknown.steady());
}

TEST_CASE("a void pair is taken again whole, at most three times, with every cause on record") {
  // each time: 'c' off its clock before the pair, 'h' held up during it, 'o' another process there
  // when it has been taken, '.' fine
  const auto take = [](char always) {
    Pair pair;
    int attempts = 0;
    const auto when = [&](char which, const char* cause) {
      return always == which ? VoidCause(cause) : std::nullopt;
    };
    take_until_counted(pair, {[&] { return when('c', "off clock"); },
                              [&] {
                                ++attempts;
                                return when('h', "held up");
                              },
                              [&] { return when('o', "others"); }});
    return std::make_pair(pair, attempts);
  };
  CHECK(take('.').first.voids == 0);
  CHECK(take('.').first.void_causes.empty());
  CHECK_THROWS_AS(take('h'), Error);        // held up each time
  const auto [pair, attempts] = take('c');  // off clock each time: the last counts
  CHECK(attempts == 1);
  CHECK(pair.voids == kMaxVoids);
  CHECK(pair.void_causes.size() == kMaxVoids + 1);
  CHECK(pair.void_causes.back().find("counted") != std::string::npos);
  const auto [beside_others, tries_beside] = take('o');
  CHECK(tries_beside == kMaxVoids + 1);
  CHECK(beside_others.voids == kMaxVoids);
  CHECK(beside_others.void_causes.back() == "others (counted, after the last try)");

  Pair mixed;
  int clocks = 0, tries = 0;
  take_until_counted(mixed, {[&] { return ++clocks == 2 ? VoidCause("off clock") : std::nullopt; },
                             [&] { return ++tries == 1 ? VoidCause("held up") : std::nullopt; },
                             [] { return VoidCause(); }});
  CHECK(mixed.voids == 2);
  CHECK(mixed.void_causes == std::vector<std::string>{"held up", "off clock"});
  CHECK(tries == 2);
}

TEST_CASE("the slack that arms of very different lengths have is allowed, no more") {
  CHECK(slack_allowance_ns(DriverKind::cuda, 50e3, 50e3) == 1e3);
  CHECK(slack_allowance_ns(DriverKind::cuda, 20e6, 4e3) > 2 * 19e3);  // seen on an H200
  CHECK(slack_allowance_ns(DriverKind::cuda, 100e3, 50e3) < 1.2e3);
  CHECK(slack_allowance_ns(DriverKind::host, 1e6, 1e6) < 400e3);
}

TEST_CASE("a clock is steady when its last five samples agree") {
  RoundClock clock(DriverKind::cuda);
  for (const double cycles : {100e3, 140e3, 170e3, 189e3, 190e3}) clock.add(cycles, 100e3);
  CHECK_FALSE(clock.steady());
  for (int i = 0; i < 4; ++i) clock.add(190e3, 100e3);
  CHECK(clock.steady());
}
