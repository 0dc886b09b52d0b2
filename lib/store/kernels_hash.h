// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bundle/bundle.h"

namespace kjudge {

// SHA-256 over what a recording launches: the modules, and of each shape's graph the kernels with
// their dimensions, attributes and arguments, the copies and sets, and the edges. An address counts
// as its place in its region, so where memory lies and what is in it makes no difference, and
// neither does anything in the files that no kernel comes of.
std::string kernels_sha256(const Bundle& bundle);

}  // namespace kjudge
