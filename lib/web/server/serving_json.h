// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json_fields.h"

namespace kjudge {

// The first line of `kjudge serve --json`: kjudge-serving/1.
Json serving_json(const std::string& address);
JsonFormat serving_json_format();

}  // namespace kjudge
