// SPDX-License-Identifier: Apache-2.0

// How an evaluation is measured (method 1):
//   1. The supervisor makes device memory for all inputs, rebuilds the reference in its own context
//      and copies both arms' recorded memory out of their bundles.
//   2. Checking, before anything is timed: a worker of each arm replays every shape on the
//   capture's
//      made-up inputs, which must give the capture's outputs; the submission then replays every
//      test and shape on hidden inputs of every regime. The baseline's length fixes m.
//   3. Rounds of fresh workers. One pair: fresh inputs, expected outputs, both arms in a drawn
//   order,
//      then every output against the expected ones. Short shapes do this m times.
//   4. The four clocks of all replays are held against each other.
// Only one arm runs at a time, and the supervisor sleeps (host driver) while it does.

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "record/made_up.h"
#include "replay/draw.h"
#include "replay/phases.h"
#include "replay/plan.h"
#include "replay/replay.h"
#include "replay/supervisor_device.h"
#include "replay/timing.h"
#include "replay/worker_process.h"

namespace kjudge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxVoids = 3;
constexpr int kTestReplays = 2;         // of a test, per regime
constexpr int kCalibrationReplays = 3;  // of the baseline, to fix m
constexpr std::size_t kRoundClockSamples = 9;

std::size_t index(ArmName arm) { return static_cast<std::size_t>(arm); }

// A wrong output of the submission, or a clock not to be believed: the end of measuring. The facts
// are stored already.
struct Concluded {};

class Measurement {
 public:
  Measurement(const Driver& driver, const Challenge& challenge, const ReplayOptions& options,
              const ReportProgress& progress, Evaluation& evaluation);

  void set_up(const BundleReader& reference, const BundleReader& baseline,
              const BundleReader& submission);
  void check_first();
  void run_rounds();
  void judge_clocks();
  void conclude(const ArmFailed& failed);
  void finish();

 private:
  using Workers = std::array<std::unique_ptr<Worker>, 2>;  // by ArmName
  struct Replay {
    Worker::Replayed result;
    std::uint64_t poison = 0;
  };

  void tick() const {
    if (progress_) progress_(now_);
  }
  void say(const std::string& step, std::size_t shape);
  std::string in_shape(std::size_t shape) const {
    return cat("shape ", shapes_[shape]->name, ": ");
  }

  Workers start_workers(const PlannedRound& plan);
  template <class Body>
  void with_second_try(const Body& body);

  void fill_hidden(std::size_t shape, std::size_t regime);
  void expect(std::size_t shape);
  Replay replay(Worker& worker, std::size_t shape, ReplayCache cache);
  // Both the outputs of a replay and that inputs are as they were.
  void check(Worker& worker, std::size_t shape, std::size_t regime, std::uint64_t poison, int round,
             int pair);
  void wrong(std::size_t shape, CheckFailure failure, const std::string& message);
  void distrust(std::size_t shape, const std::string& cause);

  void self_check(Worker& worker, std::size_t shape);
  void check_hidden(Worker& submission, std::size_t shape);
  void fix_replays(Worker& baseline, std::size_t shape);

  void run_round(int round, const PlannedRound& plan, const std::string& retaken);
  RoundClock warm_up(Workers& workers);
  void sample(RoundClock& clock);
  Pair take_pair(Workers& workers, RoundClock& clock, std::size_t shape, const PlannedPair& plan,
                 double tick_ns, int round, int number);
  // One attempt; returns why it does not count.
  std::optional<std::string> attempt(Workers& workers, std::size_t shape, const PlannedPair& plan,
                                     double tick_ns, int round, Pair& pair, int number);

  const Driver& driver_;
  const Challenge& challenge_;
  const ReplayOptions& options_;
  const ReportProgress& progress_;
  Evaluation& evaluation_;
  PhaseClock phases_;
  Progress now_;
  Draw draw_;
  std::vector<const Shape*> shapes_;                          // tests first
  std::vector<std::vector<std::vector<PlannedPair>>> plans_;  // by shape, round
  std::vector<ShapeFacts> facts_;
  std::vector<bool> reached_;
  std::vector<std::uint64_t> next_replay_;
  std::size_t current_ = 0;
  int pairs_done_ = 0, pairs_planned_ = 0;
  std::array<unsigned, 2> starts_ = {0, 0}, odd_ends_ = {0, 0};  // by ArmName
  std::string note_;
  std::unique_ptr<SupervisorDevice> side_;
};

Measurement::Measurement(const Driver& driver, const Challenge& challenge,
                         const ReplayOptions& options, const ReportProgress& progress,
                         Evaluation& evaluation)
    : driver_(driver),
      challenge_(challenge),
      options_(options),
      progress_(progress),
      evaluation_(evaluation),
      draw_(options.order_seed) {
  KJ_CHECK(options.rounds >= 1 && options.pairs_per_round >= 1);
  for (const bool timed : {false, true}) {
    for (const Shape& shape : challenge.shapes) {
      if (shape.timed != timed) continue;
      if (!options.only_shape.empty() && shape.name != options.only_shape) continue;
      shapes_.push_back(&shape);
    }
  }
  if (shapes_.empty()) {
    throw Error(Fault::usage, cat("challenge ", challenge.name, " has no shape ",
                                  options.only_shape.empty() ? "here" : options.only_shape));
  }
  for (const Shape* shape : shapes_) {
    ShapeFacts facts;
    facts.name = shape->name;
    facts.timed = shape->timed;
    facts.floor_ns = shape->floor_ns;
    facts_.push_back(facts);
    plans_.push_back(shape->timed ? plan_pairs(*shape, options.rounds, options.pairs_per_round,
                                               options.order_seed)
                                  : std::vector<std::vector<PlannedPair>>());
    if (shape->timed) pairs_planned_ += options.rounds * options.pairs_per_round;
  }
  reached_.assign(shapes_.size(), false);
  next_replay_.assign(shapes_.size(), 0);
}

void Measurement::say(const std::string& step, std::size_t shape) {
  current_ = shape;
  now_.step = step;
  now_.shape = shapes_[shape]->name;
  now_.done = pairs_planned_ == 0 ? 0 : static_cast<double>(pairs_done_) / pairs_planned_;
  tick();
}

void Measurement::set_up(const BundleReader& reference, const BundleReader& baseline,
                         const BundleReader& submission) {
  say("starting", 0);
  const auto timer = phases_.time("start");
  reach("supervisor", "context");
  side_ = std::make_unique<SupervisorDevice>(driver_, options_.device, options_.allow_pageable);
  side_->make_inputs(shapes_);
  reach("supervisor", "inputs");
  try {
    side_->rebuild_reference(bind_shapes(reference, shapes_, ExpectedType::of_reference));
  } catch (Error& error) {
    error.context("the reference's bundle");
    throw;
  }
  reach("supervisor", "reference");
  try {
    side_->prepare_arm(ArmName::baseline,
                       bind_shapes(baseline, shapes_, ExpectedType::of_submission));
  } catch (Error& error) {
    error.context("the baseline's bundle");
    throw;
  }
  try {
    side_->prepare_arm(ArmName::submission,
                       bind_shapes(submission, shapes_, ExpectedType::of_submission));
  } catch (const DriverError& error) {
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
    throw ArmFailed(
        ArmName::submission, Verdict::out_of_memory, false,
        cat("a copy of the recorded memory does not fit on the device; allocate less in "
            "prepare() (",
            error.what(), ")"));
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
    throw ArmFailed(ArmName::submission, Verdict::refused, false,
                    cat("the bundle is not a recording of this challenge: ", error.what()));
  }
  side_->make_buffers();
}

Measurement::Workers Measurement::start_workers(const PlannedRound& plan) {
  const auto timer = phases_.time("start");
  Workers workers;
  const auto start = [&](ArmName arm) {
    WorkerStart options{driver_};
    options.device = options_.device;
    options.arm = arm;
    options.start = ++starts_[index(arm)];
    options.slot = plan.slot[index(arm)];
    options.replay_s = challenge_.limits.replay_s;
    options.program = options_.worker;
    workers[index(arm)] = std::make_unique<Worker>(options, *side_, [this] { tick(); });
  };
  const ArmName second =
      plan.started_first == ArmName::baseline ? ArmName::submission : ArmName::baseline;
  start(plan.started_first);
  start(second);
  reach("supervisor", "started");
  workers[index(plan.started_first)]->wait_built();
  workers[index(second)]->wait_built();
  reach("supervisor", "built");
  return workers;
}

// A worker that ended without a word may have been killed by something else. It gets a second try,
// with fresh workers for both arms; the second such end is the arm's own.
template <class Body>
void Measurement::with_second_try(const Body& body) {
  std::string retaken;
  for (;;) {
    try {
      return body(retaken);
    } catch (const ArmFailed& failed) {
      if (!failed.odd || ++odd_ends_[index(failed.arm)] > 1) throw;
      retaken = failed.what();
    }
  }
}

void Measurement::fill_hidden(std::size_t shape, std::size_t regime) {
  const auto timer = phases_.time("fill");
  const std::uint64_t replay = next_replay_[shape]++;
  side_->fill(shape, shapes_[shape]->regimes[regime].generators, [&](const std::string& tensor) {
    return input_key(options_.secret, options_.evaluation, shapes_[shape]->name, replay, tensor);
  });
  reach("supervisor", "filled");
}

void Measurement::expect(std::size_t shape) {
  const auto timer = phases_.time("reference");
  try {
    side_->expect(shape);
  } catch (const DriverError& error) {
    throw Error(Fault::package,
                cat("reference.py: ", in_shape(shape), "the reference failed: ", error.what()));
  }
  reach("supervisor", "expected");
}

Measurement::Replay Measurement::replay(Worker& worker, std::size_t shape, ReplayCache cache) {
  Replay replayed;
  replayed.poison = draw_.next();
  const Armed armed = worker.arm(shape, cache, replayed.poison, draw_.next());
  reach("supervisor", "armed");
  phases_.add("restore", armed.restore_ns * 1e-9);
  phases_.add("evict", armed.evict_ns * 1e-9);
  replayed.result = worker.release();
  reach("supervisor", "done");
  phases_.add(worker.arm_name() == ArmName::baseline ? "kernel (baseline)" : "kernel (submission)",
              replayed.result.clocks.supervisor_ns * 1e-9);
  phases_.add("copy", replayed.result.copy_ns * 1e-9);
  return replayed;
}

void Measurement::wrong(std::size_t shape, CheckFailure failure, const std::string& message) {
  ShapeFacts& facts = facts_[shape];
  facts.verdict = Verdict::wrong_result;
  facts.message = message;
  facts.failure = std::move(failure);
}

// Never a score: for a person to look at.
void Measurement::distrust(std::size_t shape, const std::string& cause) {
  ShapeFacts& facts = facts_[shape];
  facts.verdict = Verdict::judge_error;
  facts.message = cat("the times are not believed: ", cause,
                      "; a person has to look at this submission and at the machine");
}

void Measurement::check(Worker& worker, std::size_t shape, std::size_t regime, std::uint64_t poison,
                        int round, int pair) {
  const auto timer = phases_.time("check");
  const auto changed = side_->changed_input(shape);
  auto failure = side_->check(shape, worker.arm_name(), worker.slot(), poison);
  reach("supervisor", "checked");
  if (changed) {
    failure.emplace();
    failure->facts.output = *changed;
    failure->facts.check = kInputsChanged;
    failure->message = describe(failure->facts, {});
  }
  if (!failure) return;
  CheckFailure& facts = failure->facts;
  facts.regime = shapes_[shape]->regimes[regime].name;
  facts.round = round;
  facts.pair = pair;
  const std::string message = cat(in_shape(shape), failure->message, "; regime ", facts.regime);
  if (worker.arm_name() == ArmName::baseline) {
    throw Error(Fault::package, cat("baseline.py: ", message));
  }
  wrong(shape, std::move(facts), message);
}

// The rebuilt graph must do what the captured one did. Other bits with right values are what
// atomics give; other values mean that something the graph needs is not in it.
void Measurement::self_check(Worker& worker, std::size_t shape) {
  const BoundBundle& bound = side_->arm(worker.arm_name());
  const CapturedShape& captured = bound.bundle().shapes[bound.shapes[shape]];
  const std::uint64_t seed = bound.bundle().provenance.seed;
  {
    const auto timer = phases_.time("fill");
    side_->fill(shape, shapes_[shape]->regimes.front().generators, [&](const std::string& tensor) {
      return made_up_key(seed, captured.name, tensor);
    });
  }
  bool expected = false, differs = false;
  for (int i = 0; i < 2 && facts_[shape].verdict == Verdict::accepted; ++i) {
    const Replay replayed = replay(worker, shape, ReplayCache::as_is);
    {
      const auto timer = phases_.time("check");
      if (side_->output_hashes(shape, worker.arm_name(), worker.slot()) == captured.output_hashes) {
        continue;
      }
    }
    differs = true;
    if (!expected) expect(shape);
    expected = true;
    check(worker, shape, 0, replayed.poison, 0, 0);
  }
  reach("supervisor", "self-check");
  if (!differs || worker.arm_name() == ArmName::baseline) return;
  if (facts_[shape].verdict == Verdict::wrong_result) {
    facts_[shape].message +=
        " (on the capture's own inputs: the replay differs from the capture, so kernel_fn depends "
        "on "
        "something that is not in its graph)";
  } else {
    note_ += cat(note_.empty() ? "" : "; ", in_shape(shape),
                 "not deterministic: a replay gave other bits than the capture, within tolerance");
  }
}

void Measurement::check_hidden(Worker& submission, std::size_t shape) {
  for (std::size_t regime = 0; regime < shapes_[shape]->regimes.size(); ++regime) {
    for (int i = 0; i < (shapes_[shape]->timed ? 1 : kTestReplays); ++i) {
      if (facts_[shape].verdict != Verdict::accepted) return;
      fill_hidden(shape, regime);
      expect(shape);
      const Replay replayed = replay(submission, shape, ReplayCache::as_is);
      check(submission, shape, regime, replayed.poison, 0, 0);
    }
  }
}

void Measurement::fix_replays(Worker& baseline, std::size_t shape) {
  std::vector<double> times;
  for (int i = 0; i < kCalibrationReplays; ++i) {
    const auto cache = challenge_.cache == CacheMode::hot ? ReplayCache::hot : ReplayCache::cold;
    times.push_back(replay(baseline, shape, cache).result.clocks.event_ns);
  }
  facts_[shape].replays_per_arm = replays_per_arm(median(std::move(times)));
}

void Measurement::check_first() {
  with_second_try([&](const std::string&) {
    Workers workers = start_workers({});
    for (const auto& worker : workers) worker->calibrate(draw_.next());
    Worker& baseline = *workers[index(ArmName::baseline)];
    Worker& submission = *workers[index(ArmName::submission)];
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      say("checking", s);
      reached_[s] = true;
      self_check(submission, s);
      check_hidden(submission, s);
      if (!shapes_[s]->timed) continue;
      self_check(baseline, s);
      fix_replays(baseline, s);
    }
  });
  reach("supervisor", "checking");
  for (const ShapeFacts& facts : facts_) {
    if (facts.verdict != Verdict::accepted) throw Concluded{};
  }
}

void Measurement::sample(RoundClock& clock) {
  const auto timer = phases_.time("calibrate");
  // The best of three: a blip within one spin is no property of the clock.
  SupervisorDevice::Spin best;
  for (int i = 0; i < 3; ++i) {
    const auto spin = side_->calibrate();
    if (i == 0 || spin.ns < best.ns) best = spin;
  }
  clock.add(best.cycles, best.ns);
}

RoundClock Measurement::warm_up(Workers& workers) {
  {
    const auto timer = phases_.time("warm");
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (!shapes_[s]->timed) continue;
      for (const auto& worker : workers) {
        worker->arm(s, ReplayCache::as_is, draw_.next(), draw_.next());
        worker->release();
      }
      tick();
    }
  }
  RoundClock clock(driver_.kind);
  const auto start = Clock::now();
  const auto at_least = std::chrono::milliseconds(driver_.kind == DriverKind::cuda ? 300 : 0);
  const auto at_most = std::chrono::seconds(3);
  for (;;) {
    sample(clock);
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
    fill_hidden(shape, plan.regime);
    expect(shape);
    std::array<Replay, 2> replays;
    for (const ArmName arm : {plan.first, second}) {
      replays[index(arm)] = replay(*workers[index(arm)], shape, cache);
    }
    for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
      check(*workers[index(arm)], shape, plan.regime, replays[index(arm)].poison, round, number);
      if (facts_[shape].verdict != Verdict::accepted) throw Concluded{};
    }
    for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
      const Worker::Replayed& result = replays[index(arm)].result;
      if (result.gave_up) return cat("the release of the ", name(arm), " came too late");
      auto cause = out_of_order(result.clocks, tick_ns);
      if (result.disturbed) cause = "something else wrote where the device's stamps may lie";
      if (cause) {
        distrust(shape, cat("in round ", round, ", pair ", number, ", ", name(arm), ": ", *cause));
        throw Concluded{};
      }
      pair.arms[index(arm)].replays.push_back(result.clocks);
    }
  }
  return std::nullopt;
}

// Void only for what no arm can cause: the clock before the pair, and a release that came too late.
Pair Measurement::take_pair(Workers& workers, RoundClock& clock, std::size_t shape,
                            const PlannedPair& plan, double tick_ns, int round, int number) {
  Pair pair;
  pair.regime = shapes_[shape]->regimes[plan.regime].name;
  pair.first = plan.first;
  for (;;) {
    sample(clock);
    auto cause = clock.off();
    // After the last try a slow clock is what this machine has; both arms of the pair ran on it.
    const bool last = pair.voids == kMaxVoids;
    if (!cause || last) {
      auto held_up = attempt(workers, shape, plan, tick_ns, round, pair, number);
      if (!held_up) {
        if (cause)
          pair.void_causes.push_back(cat(*cause, "; counted, after ", kMaxVoids, " tries"));
        return pair;
      }
      if (last) {
        throw Error(Fault::device, cat(in_shape(shape), *held_up, " ", kMaxVoids + 1,
                                       " times in a row; the machine is too busy to measure on"));
      }
      cause = std::move(held_up);
    }
    ++pair.voids;
    pair.void_causes.push_back(*cause);
    const auto timer = phases_.time("calibrate");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Measurement::run_round(int round, const PlannedRound& plan, const std::string& retaken) {
  Workers workers = start_workers(plan);
  RoundFacts facts_of_round;
  for (const auto& worker : workers) {
    const auto timer = phases_.time("calibrate");
    const Calibrated calibrated = worker->calibrate(draw_.next());
    facts_of_round.null_graph_ns = std::max(facts_of_round.null_graph_ns, calibrated.null_graph_ns);
    facts_of_round.clock_tick_ns = std::max(facts_of_round.clock_tick_ns, calibrated.tick_ns);
  }
  reach("supervisor", "calibrated");
  RoundClock clock = warm_up(workers);
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

void Measurement::conclude(const ArmFailed& failed) {
  if (failed.arm == ArmName::baseline) {
    throw Error(failed.odd ? Fault::device : Fault::package,
                cat(failed.odd ? "" : "baseline.py: ", failed.what()));
  }
  ShapeFacts& facts = facts_[current_];
  facts.verdict = failed.verdict;
  facts.message = failed.what();
  reached_[current_] = true;
}

void Measurement::finish() {
  evaluation_.verdict = Verdict::accepted;
  evaluation_.message = note_;
  int failed = 0;
  for (const ShapeFacts& facts : facts_) {
    if (facts.verdict == Verdict::accepted) continue;
    if (failed++ == 0) {
      evaluation_.verdict = facts.verdict;
      evaluation_.message = facts.message;
    }
  }
  if (failed > 1) evaluation_.message += cat(" (and ", failed - 1, " more shapes failed)");
  evaluation_.shapes.clear();
  for (const Shape& shape : challenge_.shapes) {  // in the challenge's order, what was looked at
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (shapes_[s] == &shape && reached_[s]) evaluation_.shapes.push_back(std::move(facts_[s]));
    }
  }
  for (Phase& phase : phases_.finish()) evaluation_.phases.push_back(std::move(phase));
  reach("supervisor", "finished");
}

}  // namespace

void measure(const Driver& driver, const Challenge& challenge, const BundleReader& reference,
             const BundleReader& baseline, const BundleReader& submission,
             const ReplayOptions& options, const ReportProgress& progress, Evaluation& evaluation) {
  Measurement measurement(driver, challenge, options, progress, evaluation);
  try {
    measurement.set_up(reference, baseline, submission);
    measurement.check_first();
    measurement.run_rounds();
    measurement.judge_clocks();
  } catch (const Concluded&) {
  } catch (const ArmFailed& failed) {
    measurement.conclude(failed);
  }
  measurement.finish();
}

}  // namespace kjudge
