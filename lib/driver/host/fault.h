// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

namespace kjudge {

// What KJUDGE_HOST_FAULT and KJUDGE_HOST_TRACE ask of this call (see api.h): the failure that it
// shall have, or CUDA_SUCCESS. A call that fails so has no other effect. A malformed variable ends
// the process, exit status 2: a test that asks for a fault must not run without it.
CUresult injected_fault(const char* call);

}  // namespace kjudge
