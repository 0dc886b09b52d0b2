// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "challenge/challenge.h"
#include "driver/driver.h"

namespace kjudge {

// The device an evaluation runs on, as results name it.
struct DeviceIdentity {
  std::string name;    // "AMD EPYC"; for a GPU with its UUID
  std::string arch;    // "x86_64" or "sm_90"
  std::string driver;  // "host 13.0", "cuda 13.0"
  std::string trust;   // "device", or "process" on the host driver, whose kernels are host code
};

// Fault::usage when there is no device of that number.
DeviceIdentity identify(const Driver& driver, int device);

// "auto" follows the challenge: a GPU if one is there and a shape is for it, else the host driver
// if a shape is for the processor. Fault::device, saying what to do, when neither can run a shape.
const Driver& open_driver(const std::string& choice, const Challenge& challenge);

}  // namespace kjudge
