// SPDX-License-Identifier: Apache-2.0
// Linked twice into a module: the same kernel in two of its files.
#include <kjudge/host_kernel.h>

KJ_KERNEL(twin) {}
