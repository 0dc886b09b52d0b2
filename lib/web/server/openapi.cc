// SPDX-License-Identifier: Apache-2.0
#include "web/server/openapi.h"

extern "C" {
extern const char kjudge_openapi[], kjudge_openapi_end[];
}

namespace kjudge {

std::string_view openapi_document() { return {kjudge_openapi, kjudge_openapi_end}; }

}  // namespace kjudge
