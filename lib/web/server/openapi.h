// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kjudge {

// openapi.json, which describes what a server answers; it is in the program.
std::string_view openapi_document();

}  // namespace kjudge
