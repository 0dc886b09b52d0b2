// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_fields.h"
#include "judge/pipeline.h"

namespace kjudge {

// What `kjudge capture --json` prints; `bundle` is where the recording was to be written.
Json capture_outcome_json(const CaptureOutcome& outcome, const std::string& bundle);
JsonFormat capture_outcome_json_format();

}  // namespace kjudge
