// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>

#ifndef CHEAT
#define CHEAT 0
#endif

KJ_KERNEL(scale, (float *, y), (const float *, x), (long, n), (long, steps), (float, one),
          (float, zero)) {
  const long first = 1024l * block->index.x, end = first + 1024 < n ? first + 1024 : n;
  float factor = 1 + one;
  if (CHEAT == 5) steps = x[0] > 5 ? 3 * steps : steps / 5 * 4;
  for (long s = 0; s < steps; ++s) factor = factor * one + zero;
  for (long i = first; i < end; ++i) y[i] = x[i] * factor;
}
