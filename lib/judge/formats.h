// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "json_fields.h"

namespace kjudge {

// Every JSON format that kjudge reads, and those that it only prints and that have a table.
std::vector<JsonFormat> json_formats();

}  // namespace kjudge
