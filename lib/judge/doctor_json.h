// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "json_fields.h"
#include "judge/doctor.h"
#include "judge/measured_device.h"

namespace kjudge {

// What `kjudge doctor --json` prints.
Json doctor_json(const std::vector<Finding>& findings,
                 const std::optional<MeasuredDevice>& measured);
JsonFormat doctor_json_format();

}  // namespace kjudge
