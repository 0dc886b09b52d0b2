// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "driver/nvml.h"
#include "judge/doctor.h"

namespace kjudge {

// What a GPU's settings and state mean for judging on it. `which` names it in the findings; `own`
// is this process, which may have a context there. Nothing is said of what is not known.
std::vector<Finding> examine_settings(const std::string& which, const GpuSettings& settings,
                                      const GpuReading& reading, unsigned own);

// All of them, by NVML and by the driver; nothing where there is no CUDA driver.
std::vector<Finding> examine_gpus();

}  // namespace kjudge
