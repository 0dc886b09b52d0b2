// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/bundle.h"
#include "challenge/variant_request.h"

namespace kjudge {

enum class Outputs { as_submitted, as_expected };  // dtypes of outputs; as_expected: a reference's

// A valid bundle may still be of something else. Throws Fault::malformed unless it holds every
// shape of `challenge` (already for one arch) that `only` takes, none twice and none of another's,
// each with exactly the challenge's tensors: names, roles, dtypes, dimensions, contiguous.
void check_agreement(const Bundle& bundle, const Challenge& challenge, const VariantRequest& only,
                     Outputs outputs);

}  // namespace kjudge
