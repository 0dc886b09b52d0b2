// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "challenge/challenge.h"
#include "challenge/variant_request.h"
#include "driver/driver.h"
#include "replay/evaluation.h"

namespace kjudge {

struct ReplayOptions {
  int rounds = kRounds;
  int pairs_per_round = kPairsPerRound;
  VariantRequest only;  // its dtype and shape: what is replayed; none: all, tests first
  int device = 0;
  std::vector<int> other_devices;  // on which evaluate() and replay_bundles() measure too
  std::string secret;              // of the inputs
  std::string evaluation;          // UUID; part of every input key
  std::uint64_t order_seed = 0;    // start order, slots, AB/BA
  std::filesystem::path
      worker;  // what is started as `WORKER worker --socket FD`; empty: this program
  bool allow_pageable = false;  // measure although kernels can reach the worker's ordinary memory
};

// How far a measurement is. Called from the supervisor's thread, also at least every 100 ms while
// it waits for a worker. May throw anything to end the measurement.
struct Progress {
  std::string step;  // "checking", "round 2 of 6"
  std::string shape;
  double done = 0;  // 0 .. 1 of the replays
};
using ReportProgress = std::function<void(const Progress&)>;

// The supervisor: checks and times `submission` against `baseline` on hidden inputs, expected
// values from `reference`, or where that is null from the challenge's reference.py, called in
// Python. Fills verdict, message, shapes and phases of `evaluation`; the caller has filled the
// rest. A submission's failure is a verdict; an Error is the judge's (the caller stores
// judge_error). No process, no shared memory is left, whatever happens.
void measure(const Driver& driver, const Challenge& challenge, const BundleReader* reference,
             const BundleReader& baseline, const BundleReader& submission,
             const ReplayOptions& options, const ReportProgress& progress, Evaluation& evaluation);

// The worker: `kjudge worker --socket FD`, started by the supervisor only. Returns an exit code.
int run_worker(int socket);

// One shape of a bundle replayed in this process on made-up inputs, for a profiler: between
// cuProfilerStart and cuProfilerStop no kernel runs but the shape's own. Checks nothing.
void replay_once(const Driver& driver, const Challenge& challenge, const BundleReader& bundle,
                 const std::string& shape, int device);

// Every value of KJUDGE_TEST_KILL ("submission:armed"): the steps of the protocol at which a test
// may have a worker or the supervisor kill itself.
std::vector<std::string> kill_points();

}  // namespace kjudge
