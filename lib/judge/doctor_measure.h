// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "judge/measured_device.h"
#include "replay/replay.h"

namespace kjudge {

struct DoctorMeasureOptions {
  std::filesystem::path cache;  // where the result is put
  double seconds = 80;          // no evaluation begins later; there is one at least
  ReplayOptions replay;         // device, rounds and pairs
};

// Measures a device: what it does at most, then how far from 1 the speedup of a copy against itself
// comes out, by length of the copy. Keeps the result for floors, and returns it. Waits for the
// device. Throws what capture() and replay_bundles() do; Fault::device where an evaluation is not
// accepted.
MeasuredDevice measure_device(const Driver& driver, const DoctorMeasureOptions& options,
                              const ReportProgress& progress);

// For people: rates, and a table of the noise.
std::string measured_device_text(const MeasuredDevice& measured);

}  // namespace kjudge
