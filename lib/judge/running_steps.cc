// SPDX-License-Identifier: Apache-2.0
#include "judge/running_steps.h"

#include <algorithm>

#include "judge/pipeline.h"
#include "store/results.h"

namespace kjudge {
namespace {

constexpr auto kPause = std::chrono::seconds(1);

RunningEvaluation::Step step_of(const Progress& progress) {
  using Step = RunningEvaluation::Step;
  if (!progress.shape.empty()) return Step::replaying;
  if (progress.step == kBuildingStep) return Step::building;
  if (progress.step == kCapturingStep) return Step::capturing;
  return Step::queued;
}

}  // namespace

RunningSteps::RunningSteps(const std::vector<Shape>& shapes, Tell tell) : tell_(std::move(tell)) {
  for (const bool timed : {false, true}) {  // as they are replayed
    for (const Shape& shape : shapes) {
      if (shape.timed != timed) continue;
      shape_numbers_.try_emplace(shape.name, static_cast<int>(shape_numbers_.size()) + 1);
    }
  }
}

void RunningSteps::operator()(const Progress& progress) {
  const auto step = step_of(progress);
  const bool replays = step == RunningEvaluation::Step::replaying;
  if (step == step_ && (!replays || (progress.step == doing_ && progress.shape == shape_))) return;
  const bool same_step = step == step_;
  step_ = step;
  doing_ = progress.step;
  shape_ = progress.shape;
  const auto now = Clock::now();
  if (same_step && now - told_ < kPause) return;
  told_ = now;
  RunningEvaluation running;
  running.step = step;
  running.updated = utc_now();
  if (replays) {
    running.doing = progress.step;
    running.shape = progress.shape;
    const auto number = shape_numbers_.find(progress.shape);
    if (number != shape_numbers_.end()) running.shape_number = number->second;
    running.shapes = static_cast<int>(shape_numbers_.size());
    running.done = std::clamp(progress.done, 0., 1.);
  }
  tell_(running);
}

}  // namespace kjudge
