// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "challenge/challenge.h"
#include "driver/driver.h"

namespace kjudge {

// The device an evaluation runs on, as results name it.
struct DeviceIdentity {
  std::string name;    // "AMD EPYC"; for a GPU with its UUID
  std::string arch;    // "x86_64" or "sm_90"
  std::string driver;  // "host 13.0", "cuda 13.0 (580.159.04)"
  std::string trust;   // "device", or "process" on the host driver, whose kernels are host code
  std::string driver_release = {};  // "580.159.04"; empty: not known, and so not in `driver`
};

// Fault::usage when there is no device of that number.
DeviceIdentity identify(const Driver& driver, int device);

// Fault::malformed unless a bundle was recorded on a device of this model with this driver: its
// graphs may not run here, or run as they never would there.
void check_recorded_here(const Provenance& there, const DeviceIdentity& here);

// The devices after `first` that an evaluation of the challenge takes too: as many as
// gpus_per_evaluation wants. Fault::usage where there are fewer, or one is of another kind.
std::vector<int> other_devices(const Driver& driver, const Challenge& challenge, int first);

// "auto" follows the challenge: a GPU if one is there and a shape is for it, else the host driver
// if a shape is for the processor. Fault::device, saying what to do, when neither can run a shape.
const Driver& open_driver(const std::string& choice, const Challenge& challenge);

}  // namespace kjudge
