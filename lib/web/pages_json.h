// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_fields.h"
#include "web/write_site.h"

namespace kjudge {

// What `kjudge pages --json` prints; `skipped` counts the lines about what could not be read.
Json pages_json(const WrittenSite& written, int skipped);
JsonFormat pages_json_format();

}  // namespace kjudge
