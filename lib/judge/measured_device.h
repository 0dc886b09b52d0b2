// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "json_fields.h"
#include "judge/device.h"
#include "judge/device_meter.h"
#include "judge/noise.h"

namespace kjudge {

// What `kjudge doctor --measure` found of a device, as it lies in the cache for the judge: floors
// are made of it where a challenge names none.
struct MeasuredDevice {
  std::string device, arch, driver, kjudge_version;
  std::string measured;  // UTC, RFC 3339
  MeasuredRates rates;
  int evaluations = 0;  // of the same kernel as both arms
  std::vector<Noise> noise;
};

const FieldTable<MeasuredDevice>& measured_device_table();

// By device, whatever its driver's version.
std::filesystem::path measured_device_path(const std::filesystem::path& cache,
                                           const DeviceIdentity& device);

// nullopt where it was never measured. Fault::malformed, saying what to do, for a file that is not
// what doctor writes.
std::optional<MeasuredDevice> read_measured_device(const std::filesystem::path& cache,
                                                   const DeviceIdentity& device);

}  // namespace kjudge
