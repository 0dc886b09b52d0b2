// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json.h"
#include "judge/queue.h"

namespace kjudge {

// What `kjudge judge --json` prints.
Json judged_json(const JudgedQueue& done);
JsonFormat judged_json_format();

}  // namespace kjudge
