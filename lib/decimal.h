// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kjudge {

// "0.5", "300": a number as its author wrote it.
std::string decimal(double value);

}  // namespace kjudge
