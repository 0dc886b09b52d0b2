// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>

#ifndef SLOWER
#define SLOWER 0
#endif

KJ_KERNEL(steps, (float *, y), (const float *, x), (long, n), (long, steps), (long, permille),
          (float, one), (float, zero)) {
  const long first = 1024l * block->index.x, end = first + 1024 < n ? first + 1024 : n;
  const long all = steps + SLOWER * steps * permille / 1000;
  for (long i = first; i < end; ++i) {
    float value = x[i];
    for (long s = 0; s < all; ++s) value = value * one + zero;
    y[i] = value;
  }
}
