// SPDX-License-Identifier: Apache-2.0
// Kernels of the submissions in submissions.py.
#include <kjudge/host_kernel.h>

typedef float four_floats[4];

KJ_VARIABLE(int64_t, launches) = 0;
KJ_VARIABLE(four_floats, factors) = {1, 2, 3, 4};
KJ_VARIABLE(const float *, own_pointer) = &factors[2];

KJ_KERNEL(scale, (float *, out), (const float *, in), (float, factor), (int64_t, n)) {
  for (int64_t i = block->index.x; i < n; i += block->grid.x) out[i] = factor * in[i];
}

// As NCCL names its own.
KJ_KERNEL(ncclDevKernel_Scale, (float *, out), (const float *, in), (int64_t, n)) {
  for (int64_t i = block->index.x; i < n; i += block->grid.x) out[i] = in[i];
}

KJ_KERNEL(add, (float *, out), (const float *, a), (const float *, b), (int64_t, n)) {
  for (int64_t i = block->index.x; i < n; i += block->grid.x) out[i] = a[i] + b[i];
}

typedef struct {
  float *out;
  const float *in;
  int64_t n;
} scale_job;

KJ_KERNEL(scale_by_struct, (scale_job, job), (float, factor)) {
  for (int64_t i = block->index.x; i < job.n; i += block->grid.x) {
    job.out[i] = factor * job.in[i];
  }
}

typedef struct __attribute__((packed)) {
  int32_t n;
  const float *in;
} packed_job;

KJ_KERNEL(scale_packed, (float *, out), (packed_job, job)) {
  for (int32_t i = block->index.x; i < job.n; i += block->grid.x) out[i] = 2 * job.in[i];
}

KJ_KERNEL(scale_by_table, (float *const *, table), (float, factor), (int64_t, n)) {
  for (int64_t i = block->index.x; i < n; i += block->grid.x) table[0][i] = factor * table[1][i];
}

// Adds 1 to a counter in state memory and scales by it: right only if memory is restored.
KJ_KERNEL(scale_by_counter, (float *, out), (const float *, in), (float *, counter), (int64_t, n)) {
  if (block->index.x != 0) return;
  counter[0] += 1;
  for (int64_t i = 0; i < n; ++i) out[i] = counter[0] * in[i];
}

KJ_KERNEL(count_launches, (float *, out), (int64_t, n)) {
  if (block->index.x == 0) launches += 1;
  for (int64_t i = block->index.x; i < n; i += block->grid.x) out[i] = factors[1];
}

KJ_KERNEL(use_own_pointer, (float *, out), (int64_t, n)) {
  for (int64_t i = block->index.x; i < n; i += block->grid.x) out[i] = *own_pointer;
}

KJ_KERNEL(store_far, (float *, out)) { out[(int64_t)1 << 33] = 1; }
