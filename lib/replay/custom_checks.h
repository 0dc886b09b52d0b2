// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "replay/challenge_python.h"
#include "replay/device_checks.h"
#include "replay/device_side.h"

namespace kjudge {

bool uses_custom_check(const Shape& shape);

// The checks that a challenge's own check.py does, in a process of its own, on copies of outputs
// and expected outputs that no worker can reach. It gives a measure of error; what is allowed is
// kjudge's to say.
class CustomChecks {
 public:
  // `inputs` by shape, in the challenge's order. All that is given must outlive this.
  CustomChecks(DeviceSide& side, const Challenge& challenge, std::vector<const Shape*> shapes,
               const std::vector<std::vector<const DeviceMemory*>>& inputs, Channel::Idle idle);

  // The first of a replay's outputs whose error is above its limit. Fault::package when check.py
  // fails.
  std::optional<DeviceChecks::Failure> check(std::size_t shape, std::size_t regime, ArmName arm,
                                             std::span<const DeviceChecks::Place> places);
  // The first of a shape's outputs whose error, as the mean over the arm's replays so far, is above
  // a limit that is of the evaluation.
  std::optional<DeviceChecks::Failure> check_means(std::size_t shape, ArmName arm) const;

 private:
  // A check of an output, and what it came to.
  struct Custom {
    std::size_t output = 0;
    const Check* check = nullptr;
    struct Sum {
      double error = 0;
      std::uint64_t replays = 0;
    };
    std::array<Sum, 2> sums;  // by ArmName
  };
  struct Side {
    std::vector<Custom> customs;
    std::vector<DeviceBuffer> expected, out;  // by output; none where there are no customs
  };

  DeviceSide& side_;
  std::vector<const Shape*> shapes_;
  std::vector<Side> sides_;  // by shape
  std::unique_ptr<ChallengePython> python_;
};

}  // namespace kjudge
