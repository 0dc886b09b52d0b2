// SPDX-License-Identifier: Apache-2.0
#pragma once

// The driver API's declarations, for those who define it: everything else here is hidden.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
