// SPDX-License-Identifier: Apache-2.0
#include "judge/running_steps.h"

#include <doctest/doctest.h>

#include <vector>

#include "judge/pipeline.h"

using namespace kjudge;
using Step = RunningEvaluation::Step;

namespace {

Challenge some_challenge() {
  Challenge challenge;
  for (const auto& [name, timed] :
       {std::pair("big", true), std::pair("small", true), std::pair("odd", false)}) {
    Shape& shape = challenge.shapes.emplace_back();
    shape.name = name;
    shape.timed = timed;
  }
  return challenge;
}

}  // namespace

TEST_CASE("steps are told as they begin, shapes by their place") {
  std::vector<RunningEvaluation> told;
  RunningSteps steps(some_challenge().shapes,
                     [&](const RunningEvaluation& one) { told.push_back(one); });
  steps({"waiting for process 7, which has this device", "", 0});
  steps({"capturing the baseline", "", 0});
  CHECK(told.empty());  // as it was told when the claim was taken
  steps({kBuildingStep, "", 0});
  for (int i = 0; i < 3; ++i) steps({kCapturingStep, "", 0});
  for (int i = 0; i < 3; ++i) steps({"starting", "odd", 0});
  // All within a second: of replays only the first is told.
  steps({"round 1 of 6", "big", 0.5});
  REQUIRE(told.size() == 3);
  CHECK(told[0].step == Step::building);
  CHECK(told[1].step == Step::capturing);
  CHECK(told[2].step == Step::replaying);
  CHECK(told[2].doing == "starting");
  CHECK(told[2].shape_number == 1);  // tests are first
  CHECK(told[2].shapes == 3);
  CHECK_FALSE(told[2].updated.empty());
  steps({kCapturingStep, "", 0});  // a second attempt
  steps({"round 2 of 6", "small", 1.5});
  REQUIRE(told.size() == 5);
  CHECK(told[4].shape == "small");
  CHECK(told[4].shape_number == 3);
  CHECK(told[4].done == 1);
}
