// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>

KJ_KERNEL(add, (_Float16 *, c), (const _Float16 *, a), (const _Float16 *, b), (long, n)) {
  const long first = block->index.x * n;
  for (long i = first; i < first + n; ++i) c[i] = a[i] + b[i];
}

KJ_KERNEL(add32, (float *, c), (const _Float16 *, a), (const _Float16 *, b), (long, n)) {
  const long first = block->index.x * n;
  for (long i = first; i < first + n; ++i) c[i] = (float)a[i] + (float)b[i];
}
