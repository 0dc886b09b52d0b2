// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "bundle/bundle.h"
#include "json_fields.h"

namespace kjudge {

// All of a bundle but memory and images, for programs: what `kjudge dump --json` prints. Takes no
// memory to speak of beside the bundle.
void print_bundle_json(const Bundle& bundle, std::ostream& out);

const FieldTable<Bundle>& bundle_json_table();

}  // namespace kjudge
