// SPDX-License-Identifier: Apache-2.0

// How an evaluation is measured (method 1):
//
// 1. The supervisor makes device memory for all inputs, rebuilds the reference in its own context
// (or
//    starts the process that calls it in Python), and copies both arms' recorded memory out of
//    their bundles.
// 2. Checking, before anything is timed: a worker of each arm replays every shape on the capture's
//    made-up inputs, which must give the capture's outputs; the submission then replays every test
//    and shape on hidden inputs of every regime, the baseline before it where a check holds it to
//    what the baseline does. The baseline's length fixes m.
// 3. Rounds of fresh workers. One pair: fresh inputs, expected outputs, both arms in a drawn order,
//    then every output against the expected ones. Short shapes do this m times.
// 4. The four clocks of all replays are held against each other.
//
// Only one arm runs at a time. On the host driver the supervisor sleeps while it does.

#include <algorithm>

#include "replay/measurement.h"

namespace kjudge {
namespace {

std::uint64_t recorded_bytes(const Bundle& bundle) {
  std::uint64_t bytes = 0;
  for (const Region& region : bundle.regions) bytes += region.size;
  return bytes;
}

}  // namespace

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
      if (!options.only.takes(shape)) continue;
      shapes_.push_back(&shape);
    }
  }
  if (shapes_.empty()) {
    throw Error(Fault::usage, cat("challenge ", challenge.name, " has no shape ",
                                  options.only.all_shapes()    ? "here"
                                  : options.only.shape.empty() ? options.only.dtype
                                                               : options.only.shape));
  }
  for (const Shape* shape : shapes_) {
    ShapeFacts facts;
    facts.name = shape->name;
    facts.timed = shape->timed;
    facts.floor_ns = shape->floor_ns;
    if (shape->floor_ns) facts.floor_from = shape->floor_from;
    facts_.push_back(facts);
    plans_.push_back(shape->timed ? plan_pairs(*shape, options.rounds, options.pairs_per_round,
                                               options.order_seed)
                                  : std::vector<std::vector<PlannedPair>>());
    if (shape->timed) pairs_planned_ += options.rounds * options.pairs_per_round;
  }
  reached_.assign(shapes_.size(), false);
}

void Measurement::say(const std::string& step, std::size_t shape) {
  current_ = shape;
  now_.step = step;
  now_.shape = shapes_[shape]->name;
  now_.done = pairs_planned_ == 0 ? 0 : static_cast<double>(pairs_done_) / pairs_planned_;
  tick();
}

void Measurement::set_up(const BundleReader* reference, const BundleReader& baseline,
                         const BundleReader& submission) {
  say("starting", 0);
  const auto timer = phases_.time("start");
  reach("supervisor", "context");
  side_ = std::make_unique<SupervisorDevice>(
      driver_, options_.device, reference == nullptr ? 0 : arena_range(reference->bundle()),
      options_.allow_pageable);
  try {
    side_->make_inputs(shapes_);
  } catch (Error& error) {
    error.context("memory for the inputs of all shapes");
    throw;
  }
  side_->start_inputs(challenge_, [this] { tick(); });
  reach("supervisor", "inputs");
  if (reference == nullptr) {
    side_->start_reference(challenge_, [this] { tick(); });
  } else {
    try {
      side_->rebuild_reference(bind_shapes(*reference, shapes_, ExpectedType::of_reference));
    } catch (Error& error) {
      error.context("the reference's bundle");
      throw;
    }
  }
  side_->start_checks(challenge_, [this] { tick(); });
  reach("supervisor", "reference");
  try {
    side_->bind_arm(ArmName::baseline, bind_shapes(baseline, shapes_, ExpectedType::of_submission));
  } catch (Error& error) {
    error.context("the baseline's bundle");
    throw;
  }
  try {
    side_->bind_arm(ArmName::submission,
                    bind_shapes(submission, shapes_, ExpectedType::of_submission));
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
    throw ArmFailed(ArmName::submission, Verdict::refused, ArmFailed::Cause::arm,
                    cat("the bundle is not a recording of this challenge: ", error.what()));
  }
  copy_memory();
}

// The submission's last: where it does not fit, all that the judge needs did.
void Measurement::copy_memory() {
  side_->make_buffers();
  side_->make_eviction(challenge_.cache);
  try {
    side_->copy_memory(ArmName::baseline);
  } catch (Error& error) {
    error.context("the baseline's bundle");
    throw;
  }
  try {
    side_->copy_memory(ArmName::submission);
  } catch (const DriverError& error) {
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
    throw ArmFailed(
        ArmName::submission, Verdict::out_of_memory, ArmFailed::Cause::arm,
        cat("a copy of the recorded memory does not fit on the device; allocate less in "
            "prepare() (",
            error.what(), ")"));
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
    throw ArmFailed(ArmName::submission, Verdict::refused, ArmFailed::Cause::arm,
                    cat("the recorded memory cannot be read: ", error.what()));
  }
}

Measurement::Workers Measurement::start_workers(const PlannedRound& plan) {
  const auto timer = phases_.time("start");
  Workers workers;
  const auto start = [&](ArmName arm) {
    WorkerStart options{driver_};
    options.device = options_.device;
    options.arm = arm;
    options.start = ++starts_[arm_index(arm)];
    options.slot = plan.slot[arm_index(arm)];
    options.replay_s = challenge_.limits.replay_s;
    options.program = options_.worker;
    workers[arm_index(arm)] = std::make_unique<Worker>(options, *side_, [this] { tick(); });
  };
  const ArmName second =
      plan.started_first == ArmName::baseline ? ArmName::submission : ArmName::baseline;
  start(plan.started_first);
  start(second);
  reach("supervisor", "started");
  workers[arm_index(plan.started_first)]->wait_built();
  workers[arm_index(second)]->wait_built();
  reach("supervisor", "built");
  return workers;
}

// By the place, not by what went before: how often a pair was void, and how many replays it has,
// follows from times, and the evaluation that is made again has the same inputs all the same.
void Measurement::fill_hidden(const Place& place, int voids, int n) {
  const auto timer = phases_.time("fill");
  std::uint64_t replay = 0;
  const auto add = [&](unsigned bits, std::uint64_t value) {
    KJ_CHECK(value >> bits == 0);
    replay = replay << bits | value;
  };
  add(16, static_cast<std::uint64_t>(place.round));
  add(8, static_cast<std::uint64_t>(take_));
  add(16, place.round > 0 ? static_cast<std::uint64_t>(place.pair) : place.regime);
  add(8, static_cast<std::uint64_t>(voids));
  add(8, static_cast<std::uint64_t>(n));
  side_->fill(place.shape, place.regime, [&](const std::string& tensor) {
    return input_key(options_.secret, options_.evaluation, shapes_[place.shape]->name, replay,
                     tensor);
  });
  reach("supervisor", "filled");
}

void Measurement::expect(std::size_t shape) {
  const auto timer = phases_.time("reference");
  try {
    side_->expect(shape);
  } catch (const DriverError& error) {
    throw Error(is_kernel_fault(error.result()) ? Fault::package : Fault::device,
                cat("reference.py: ", in_shape(shape), "the reference failed: ", error.what()));
  }
  reach("supervisor", "expected");
}

Measurement::Replay Measurement::replay(Worker& worker, std::size_t shape, ReplayCache cache) {
  {
    const auto timer = phases_.time("copy");
    side_->wipe(worker.slot());
  }
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

// Never a score: for a person to look at.
void Measurement::distrust(std::size_t shape, const std::string& cause) {
  ShapeFacts& facts = facts_[shape];
  facts.verdict = Verdict::judge_error;
  facts.message = cat("the times are not believed: ", cause,
                      "; a person has to look at this submission and at the machine");
}

void Measurement::check_outputs(Worker& worker, const Place& place, std::uint64_t poison) {
  const auto timer = phases_.time("check");
  auto failure = side_->check(place.shape, place.regime, worker.arm_name(), worker.slot(), poison);
  reach("supervisor", "checked");
  if (!failure) return;
  if (worker.arm_name() == ArmName::baseline) {
    throw Error(Fault::package,
                cat("baseline.py against reference.py: ", in_shape(place.shape), failure->message));
  }
  wrong(place, std::move(failure->facts), failure->message);
}

// Where the limit is of the mean over all replays, it takes the last of them to tell.
void Measurement::check_means() {
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    if (!reached_[s] || facts_[s].verdict != Verdict::accepted) continue;
    if (const auto failure = side_->check_means(s, ArmName::baseline)) {
      throw Error(Fault::package,
                  cat("baseline.py against reference.py: ", in_shape(s), failure->message));
    }
    if (auto failure = side_->check_means(s, ArmName::submission)) {
      facts_[s].verdict = Verdict::wrong_result;
      facts_[s].message = cat(in_shape(s), failure->message);
      facts_[s].failure = std::move(failure->facts);
    }
  }
}

// The workers cannot write there, so this finds no careless kernel but a hole in the driver.
void Measurement::check_inputs(const Place& place) {
  const auto timer = phases_.time("check");
  const auto changed = side_->changed_input(place.shape);
  if (!changed) return;
  CheckFailure failure;
  failure.output = *changed;
  failure.check = kInputsChanged;
  wrong(place, failure, describe(failure, {}));
}

void Measurement::wrong(const Place& place, CheckFailure failure, const std::string& message) {
  failure.regime = shapes_[place.shape]->regimes[place.regime].name;
  failure.round = place.round;
  failure.pair = place.pair;
  ShapeFacts& facts = facts_[place.shape];
  facts.verdict = Verdict::wrong_result;
  facts.message = cat(in_shape(place.shape), message, "; regime ", failure.regime);
  facts.failure = std::move(failure);
}

void Measurement::conclude(const ArmFailed& failed) {
  const bool own = failed.cause == ArmFailed::Cause::arm;
  if (failed.arm == ArmName::baseline && failed.verdict == Verdict::out_of_memory) {
    const std::uint64_t baseline = recorded_bytes(side_->arm(ArmName::baseline).bundle());
    const std::uint64_t submission = recorded_bytes(side_->arm(ArmName::submission).bundle());
    if (submission > baseline) {
      return conclude(ArmFailed(ArmName::submission, Verdict::out_of_memory, ArmFailed::Cause::arm,
                                cat("the device has no room for the submission's ", submission,
                                    " bytes of recorded memory beside the baseline's ", baseline,
                                    "; allocate less in prepare() (", failed.what(), ")")));
    }
  }
  if (failed.arm == ArmName::baseline) {
    throw Error(own ? Fault::package : Fault::device,
                cat(own ? "baseline.py: " : "", failed.what()));
  }
  if (failed.cause == ArmFailed::Cause::machine) throw Error(Fault::device, failed.what());
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
  store_phases();
  reach("supervisor", "finished");
}

void Measurement::store_phases() {
  for (Phase& phase : phases_.finish()) evaluation_.phases.push_back(std::move(phase));
}

// The driver refused the supervisor's own work: what that was tells where to look.
void Measurement::explain(DriverError& error) {
  store_phases();
  const std::string_view step = phases_.failed();
  error.context(step.empty() || step == "start"
                    ? now_.step
                    : cat(in_shape(current_), now_.step, ", step ", step));
}

void measure(const Driver& driver, const Challenge& challenge, const BundleReader* reference,
             const BundleReader& baseline, const BundleReader& submission,
             const ReplayOptions& options, const ReportProgress& progress, Evaluation& evaluation) {
  Measurement measurement(driver, challenge, options, progress, evaluation);
  try {
    measurement.set_up(reference, baseline, submission);
    measurement.check_first();
    measurement.run_rounds();
    measurement.check_means();
    measurement.judge_clocks();
  } catch (const Concluded&) {
  } catch (const ArmFailed& failed) {
    measurement.conclude(failed);
  } catch (DriverError& error) {
    measurement.explain(error);
    throw;
  }
  measurement.finish();
}

}  // namespace kjudge
