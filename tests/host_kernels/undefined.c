// SPDX-License-Identifier: Apache-2.0
// A module that needs what nobody has.
#include <kjudge/host_kernel.h>

extern int nobody_has_this(int);
KJ_KERNEL(needy, (int *, out)) { *out = nobody_has_this(*out); }
