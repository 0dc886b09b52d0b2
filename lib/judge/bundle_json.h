// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/bundle.h"
#include "json.h"

namespace kjudge {

// All of a bundle but memory and images, for programs: what `kjudge dump --json` prints.
Json bundle_json(const Bundle& bundle);

}  // namespace kjudge
