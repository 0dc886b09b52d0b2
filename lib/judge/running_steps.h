// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "replay/replay.h"
#include "store/running.h"

namespace kjudge {

// Makes of the progress of evaluate() what is told of it to others: only where a step or shape
// begins, when no arm runs, and of shapes at most one a second.
class RunningSteps {
 public:
  using Tell = std::function<void(const RunningEvaluation&)>;
  // `shapes` are those that are replayed.
  RunningSteps(const std::vector<Shape>& shapes, Tell tell);
  void operator()(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  const Tell tell_;
  std::map<std::string, int> shape_numbers_;
  RunningEvaluation::Step step_ = RunningEvaluation::Step::queued;
  std::string doing_, shape_;
  Clock::time_point told_;
};

}  // namespace kjudge
