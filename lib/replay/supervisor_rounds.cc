// SPDX-License-Identifier: Apache-2.0

// Rounds, pairs, and when a pair does not count.

#include <algorithm>
#include <thread>

#include "replay/measurement.h"
#include "replay/plausible.h"

namespace kjudge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRoundClockSamples = 9;

}  // namespace

// The best of three: a blip within one spin is no property of the clock.
SupervisorDevice::Spin Measurement::spin() {
  const auto timer = phases_.time("calibrate");
  SupervisorDevice::Spin best;
  for (int i = 0; i < 3; ++i) {
    const auto one = side_->calibrate();
    if (i == 0 || one.ns < best.ns) best = one;
  }
  return best;
}

void Measurement::sample(RoundClock& clock) {
  const SupervisorDevice::Spin best = spin();
  clock.add(best.cycles, best.ns);
}

// What the shape's own work left the GPU at. Between its pairs NVML's calls, of milliseconds, would
// let the GPU cool.
void Measurement::observe(RoundFacts& round) {
  if (driver_.kind != DriverKind::cuda) return;
  const SupervisorDevice::Spin now = spin();
  if (now.ns > 0) round.clock_mhz = kClockMhz.keep(now.cycles / now.ns * 1e3);
  const auto timer = phases_.time("calibrate");
  GpuReading reading = side_->gpu_reading();
  round.power_w = kPowerW.keep(reading.power_w);
  round.temperature_c = kTemperatureC.keep(reading.temperature_c);
  round.throttle_reasons = std::move(reading.throttle_reasons);
}

// One untimed replay of each arm: pages, graphs and code are touched, and the shape is selected.
void Measurement::warm_up(Workers& workers, std::size_t shape) {
  const auto timer = phases_.time("warm");
  for (const auto& worker : workers) {
    side_->wipe(worker->slot());
    worker->arm(shape, ReplayCache::as_is, draw_.next(), draw_.next());
    worker->release();
  }
}

RoundClock Measurement::come_to_steady_clock() {
  RoundClock clock(driver_.kind);
  const auto start = Clock::now();
  const auto at_least = std::chrono::milliseconds(driver_.kind == DriverKind::cuda ? 300 : 0);
  const auto at_most = std::chrono::seconds(3);
  for (;;) {
    sample(clock);
    tick();
    const auto spent = Clock::now() - start;
    if (spent >= at_most) break;
    if (spent >= at_least && clock.samples() >= kRoundClockSamples && clock.steady()) break;
  }
  return clock;
}

std::optional<std::string> Measurement::attempt(Workers& workers, std::size_t shape,
                                                const PlannedPair& plan, double tick_ns, int round,
                                                Pair& pair, int number) {
  const auto cache = challenge_.cache == CacheMode::hot ? ReplayCache::hot : ReplayCache::cold;
  const ArmName second = plan.first == ArmName::baseline ? ArmName::submission : ArmName::baseline;
  pair.arms = {};
  for (int i = 0; i < facts_[shape].replays_per_arm; ++i) {
    const Place place{shape, plan.regime, round, number};
    fill_hidden(place, pair.voids, i);
    expect(shape);
    std::array<Replay, 2> replays;
    for (const ArmName arm : {plan.first, second}) {
      replays[arm_index(arm)] = replay(*workers[arm_index(arm)], shape, cache);
    }
    for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
      check_outputs(*workers[arm_index(arm)], place, replays[arm_index(arm)].poison);
    }
    check_inputs(place);
    if (facts_[shape].verdict != Verdict::accepted) throw Concluded{};
    for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
      const Worker::Replayed& result = replays[arm_index(arm)].result;
      if (result.gave_up) return cat("the release of the ", name(arm), " came too late");
      auto cause = out_of_order(result.clocks, tick_ns);
      if (result.disturbed) cause = "something else wrote where the device's stamps may lie";
      if (cause) {
        distrust(shape, cat("in round ", round, ", pair ", number, ", ", name(arm), ": ", *cause));
        throw Concluded{};
      }
      pair.arms[arm_index(arm)].replays.push_back(result.clocks);
    }
  }
  return std::nullopt;
}

Pair Measurement::take_pair(Workers& workers, RoundClock& clock, std::size_t shape,
                            const PlannedPair& plan, double tick_ns, int round, int number) {
  Pair pair;
  pair.regime = shapes_[shape]->regimes[plan.regime].name;
  pair.first = plan.first;
  const auto off_clock = [&] {
    if (pair.voids > 0) {
      const auto timer = phases_.time("calibrate");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    sample(clock);
    return clock.off();
  };
  const auto measured = [&] { return attempt(workers, shape, plan, tick_ns, round, pair, number); };
  // One that stays is told once a round: trying every pair again would take four times as long.
  const auto others = [&]() -> VoidCause {
    if (others_counted_) return std::nullopt;
    VoidCause cause = side_->other_processes();
    others_counted_ = cause && pair.voids == kMaxVoids;
    return cause;
  };
  try {
    take_until_counted(pair, {off_clock, measured, others});
  } catch (const DriverError&) {
    throw;  // explain() tells the shape
  } catch (Error& error) {
    error.context(cat("shape ", shapes_[shape]->name));
    throw;
  }
  return pair;
}

void Measurement::run_round(int round, const PlannedRound& plan, const std::string& retaken) {
  Workers workers = start_workers(plan);
  others_counted_ = false;
  side_->other_processes();
  RoundFacts facts_of_round;
  for (const auto& worker : workers) {
    const auto timer = phases_.time("calibrate");
    const Calibrated calibrated = worker->calibrate(draw_.next());
    facts_of_round.null_graph_ns = std::max(facts_of_round.null_graph_ns, calibrated.null_graph_ns);
    facts_of_round.clock_tick_ns = std::max(facts_of_round.clock_tick_ns, calibrated.tick_ns);
  }
  reach("supervisor", "calibrated");
  RoundClock clock = come_to_steady_clock();
  const int before = pairs_done_;
  // The facts of a round appear whole, or as far as they got when the round is the last.
  std::vector<RoundFacts> taken(shapes_.size(), facts_of_round);
  const auto store = [&] {
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (!taken[s].pairs.empty()) facts_[s].rounds.push_back(std::move(taken[s]));
    }
  };
  try {
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (!shapes_[s]->timed) continue;
      say(cat("round ", round, " of ", options_.rounds), s);
      warm_up(workers, s);
      int number = 0;
      for (const PlannedPair& planned : plans_[s][static_cast<std::size_t>(round - 1)]) {
        say(cat("round ", round, " of ", options_.rounds), s);
        Pair pair =
            take_pair(workers, clock, s, planned, facts_of_round.clock_tick_ns, round, ++number);
        if (number == 1 && !retaken.empty()) {
          ++pair.voids;
          pair.void_causes.push_back(cat("the round was taken again: ", retaken));
        }
        taken[s].pairs.push_back(std::move(pair));
        ++pairs_done_;
      }
      observe(taken[s]);
    }
  } catch (const Concluded&) {
    store();
    throw;
  } catch (const ArmFailed&) {
    pairs_done_ = before;
    throw;
  }
  store();
  reach("supervisor", "round");
}

void Measurement::run_rounds() {
  if (pairs_planned_ == 0) return;
  const auto plan = plan_rounds(options_.rounds, options_.order_seed);
  for (int round = 1; round <= options_.rounds; ++round) {
    with_second_try([&](const std::string& retaken) {
      run_round(round, plan[static_cast<std::size_t>(round - 1)], retaken);
    });
  }
}

void Measurement::judge_clocks() {
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    if (const auto cause = suspicious_slack(facts_[s], driver_.kind)) distrust(s, *cause);
  }
}

}  // namespace kjudge
