// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "challenge/challenge.h"
#include "driver/driver.h"
#include "judge/profile.h"

namespace kjudge {

// find_ncu(). Fault::device also where the driver has no profiler.
std::filesystem::path ncu_for(const Driver& driver);

// One shape of a bundle, replayed by this program under ncu; `challenge` is for the device's arch.
struct ShapeToProfile {
  const Driver& driver;
  int device = 0;
  const Challenge& challenge;
  std::string shape;
  std::filesystem::path bundle;
  std::string submission;  // as the profile names it
};
// Fills `run.command`. Faults as run_ncu.
Profile profile_shape(const ShapeToProfile& what, NcuRun run,
                      const std::function<void()>& tick = {});

}  // namespace kjudge
