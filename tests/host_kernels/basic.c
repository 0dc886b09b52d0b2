// SPDX-License-Identifier: Apache-2.0
// Kernels of the host driver's tests, the C half of their module.
#include <kjudge/host_kernel.h>

KJ_KERNEL(nothing) {}

KJ_KERNEL(scale, (float *, out), (const float *, in), (float, factor), (long, n)) {
  const long blocks = block->grid.x;
  for (long i = block->index.x; i < n; i += blocks) out[i] = factor * in[i];
}

// One cell for each block and each thing it sees.
KJ_KERNEL(places, (uint32_t *, out)) {
  const kj_dim3 at = block->index, grid = block->grid;
  const uint32_t flat = (at.z * grid.y + at.y) * grid.x + at.x;
  out[flat] = at.x + 100 * at.y + 10000 * at.z + 1000000 * block->block.x;
}

// All sizes and alignments a parameter buffer can have.
struct wide {
  char tag;
  double value;
  short tail;
};
KJ_KERNEL(mixed, (double *, out), (char, a), (short, b), (char, c), (int, d), (char, e),
          (double, f), (float, g), (struct wide, h), (char, i), (int64_t, j)) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
  out[4] = e;
  out[5] = f;
  out[6] = g;
  out[7] = h.tag;
  out[8] = h.value;
  out[9] = h.tail;
  out[10] = i;
  out[11] = (double)j;
}

KJ_KERNEL(many, (long *, out), (int, p1), (int, p2), (int, p3), (int, p4), (int, p5), (int, p6),
          (int, p7), (int, p8), (int, p9), (int, p10), (int, p11), (int, p12), (int, p13),
          (int, p14), (int, p15), (int, p16), (int, p17), (int, p18), (int, p19), (int, p20),
          (int, p21), (int, p22), (int, p23)) {
  *out = p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 + p9 + p10 + p11 + p12 + p13 + p14 + p15 + p16 +
         p17 + p18 + p19 + p20 + p21 + p22 + 1000L * p23;
}

// *value = *value * factor + term: does not commute, so the order of a graph shows.
KJ_KERNEL(affine, (int64_t *, value), (int64_t, factor), (int64_t, term)) {
  *value = *value * factor + term;
}

KJ_VARIABLE(int, counter) = 7;

KJ_KERNEL(count, (int *, seen)) {
  const int before = kj_atomic_add(&counter, 1);
  if (seen != 0) *seen = before + 1;
}
