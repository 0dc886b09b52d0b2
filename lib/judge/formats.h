// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "json.h"

namespace kjudge {

// Every JSON format that kjudge reads.
std::vector<JsonFormat> json_formats();

}  // namespace kjudge
