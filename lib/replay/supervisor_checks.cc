// SPDX-License-Identifier: Apache-2.0

// What is checked before anything is timed.

#include "challenge/generators.h"
#include "record/made_up.h"
#include "replay/measurement.h"

namespace kjudge {
namespace {

constexpr int kTestReplays = 2;         // of a test, per regime
constexpr int kCalibrationReplays = 3;  // of the baseline, to fix m

}  // namespace

// The rebuilt graph must do what the captured one did. Other bits with right values are what
// atomics give; other values mean that something the graph needs is not in it.
void Measurement::self_check(const Workers& workers, ArmName arm, std::size_t shape) {
  Worker& worker = *workers[arm_index(arm)];
  const BoundBundle& bound = side_->arm(worker.arm_name());
  const CapturedShape& captured = bound.bundle().shapes[bound.shapes[shape]];
  const std::uint64_t seed = bound.bundle().provenance.seed;
  {
    const auto timer = phases_.time("fill");
    side_->fill(shape, 0, [&](const std::string& tensor) {
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
    if (!expected) {
      expect(shape);
      if (arm == ArmName::submission) check_baseline(workers, {shape});
    }
    expected = true;
    check_outputs(worker, {shape}, replayed.poison);
  }
  reach("supervisor", "self-check");
  if (!differs || worker.arm_name() == ArmName::baseline) return;
  if (facts_[shape].verdict == Verdict::wrong_result) {
    // What was never written holds other poison in each replay, and says nothing about the graph.
    if (facts_[shape].failure && facts_[shape].failure->unwritten > 0) return;
    facts_[shape].message +=
        " (on the recording's own inputs, where the recording gave other bits: kernel_fn depends "
        "on "
        "what is not in its graph, or its kernels race)";
  } else {
    note_ += cat(note_.empty() ? "" : "; ", in_shape(shape),
                 "not deterministic: a replay gave other bits than the capture, within tolerance");
  }
}

// Where the submission is held to what the baseline does on the same inputs, it must have done it.
void Measurement::check_baseline(const Workers& workers, const Place& place) {
  if (!compares_arms(*shapes_[place.shape])) return;
  Worker& baseline = *workers[arm_index(ArmName::baseline)];
  check_outputs(baseline, place, replay(baseline, place.shape, ReplayCache::as_is).poison);
}

// Called after the submission's outputs were wrong, on the same inputs: a baseline that is wrong
// there too tells of a reference that is, which is nobody's fault but the challenge's.
void Measurement::prove_expected(Worker& baseline, const Place& place) {
  if (facts_[place.shape].verdict != Verdict::wrong_result) return;
  check_outputs(baseline, place, replay(baseline, place.shape, ReplayCache::as_is).poison);
}

// Else an evaluation could not be made again. What inputs.py draws without the seed, or keeps from
// call to call, shows in the second of two calls.
void Measurement::prove_inputs(const Place& place) {
  const Regime& regime = shapes_[place.shape]->regimes[place.regime];
  if (!uses_python(regime)) return;
  const auto before = side_->input_digests(place.shape);
  fill_hidden(place, 0, 0);
  if (side_->input_digests(place.shape) == before) return;
  throw Error(Fault::package, cat((challenge_.folder / "inputs.py").string(), ": ",
                                  in_shape(place.shape), "regime ", regime.name,
                                  ": the same seed gave other inputs; draw from the seed alone"));
}

void Measurement::check_hidden(const Workers& workers, std::size_t shape) {
  Worker& submission = *workers[arm_index(ArmName::submission)];
  Worker& baseline = *workers[arm_index(ArmName::baseline)];
  for (std::size_t regime = 0; regime < shapes_[shape]->regimes.size(); ++regime) {
    for (int i = 0; i < (shapes_[shape]->timed ? 1 : kTestReplays); ++i) {
      if (facts_[shape].verdict != Verdict::accepted) return;
      fill_hidden({shape, regime}, 0, i);
      if (i == 0) prove_inputs({shape, regime});
      expect(shape);
      check_baseline(workers, {shape, regime});
      const Replay replayed = replay(submission, shape, ReplayCache::as_is);
      check_outputs(submission, {shape, regime}, replayed.poison);
      prove_expected(baseline, {shape, regime});
      check_inputs({shape, regime});
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
    note_.clear();
    Workers workers = start_workers({});
    for (const auto& worker : workers) worker->calibrate(draw_.next());
    Worker& baseline = *workers[arm_index(ArmName::baseline)];
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      say("checking", s);
      reached_[s] = true;
      self_check(workers, ArmName::submission, s);
      prove_expected(baseline, {s});
      check_hidden(workers, s);
      if (!shapes_[s]->timed || facts_[s].verdict != Verdict::accepted) continue;
      self_check(workers, ArmName::baseline, s);
      fix_replays(baseline, s);
    }
  });
  reach("supervisor", "checking");
  for (const ShapeFacts& facts : facts_) {
    if (facts.verdict != Verdict::accepted) throw Concluded{};
  }
}

}  // namespace kjudge
