// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "challenge/challenge.h"

namespace kjudge {

// A challenge in words, for its page and those of evaluations.

// "y: within 1e-10 + 2e-05 · |expected|; ..." of every output.
std::string checks_text(const Shape& shape);
// "nominal 3, large 2": of the pairs of a round.
std::string regimes_text(const Shape& shape);
// "x: float32 [64 × 48]; ...".
std::string inputs_text(const Shape& shape);
std::string outputs_text(const Shape& shape);
// "cols 48, rows 64".
std::string dims_text(const Shape& shape);

}  // namespace kjudge
