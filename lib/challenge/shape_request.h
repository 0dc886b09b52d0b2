// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "challenge/challenge.h"
#include "json.h"

namespace kjudge {

enum class OutputTypes { submitted, expected };  // expected: those that the reference writes

// A shape as the Python programs of harness/ read it: dims, scalars, tensors, generators of the
// first regime.
Json shape_request(const Shape& shape, OutputTypes types);

}  // namespace kjudge
