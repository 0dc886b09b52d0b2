// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "challenge/challenge.h"
#include "judge/measured_device.h"

namespace kjudge {

// What a floor is computed with, of one device.
struct FloorBasis {
  std::string device;             // its name
  std::uint64_t cache_bytes = 0;  // of the last level
  std::optional<MeasuredRates> measured;
};

// Fault::malformed for a file of doctor's that cannot be read.
FloorBasis floor_basis(const Driver& driver, int device, const std::filesystem::path& cache);

// Gives a floor to every shape that says its work: the longer of what its bytes and its operations
// take at the rates that the challenge has for the device, or else at those measured. None where
// neither is known.
//
// Bytes that are written may still be in the caches when a kernel ends, so that as many as these
// hold take no time; nor do so many of those read where the challenge wants them hot.
void compute_floors(Challenge& challenge, const FloorBasis& basis);

}  // namespace kjudge
