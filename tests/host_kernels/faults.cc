// SPDX-License-Identifier: Apache-2.0
// The C++ half: kernels that go wrong, and what they share.
#undef NDEBUG
#include <assert.h>
#include <kjudge/host_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <stdexcept>

KJ_VARIABLE(double, table[4]) = {1, 2, 3, 4};

KJ_KERNEL(sum_table, (double *, out)) { *out = table[0] + table[1] + table[2] + table[3]; }

KJ_KERNEL(atomics, (int32_t *, i), (int64_t *, l), (float *, f), (double *, d)) {
  kj_atomic_add(i, 1);
  kj_atomic_add(l, int64_t{1} << 33);
  kj_atomic_add(f, 0.5f);
  kj_atomic_add(d, 0.25);
}

KJ_KERNEL(cores, (uint32_t *, out), (uint64_t *, time)) {
  *out = kj_threads();
  *time = kj_global_timer();
}

// Shared memory: whether it came as zeros, then left dirty.
KJ_KERNEL(shared_residue, (int *, dirty)) {
  auto *bytes = static_cast<unsigned char *>(block->shared);
  for (size_t i = 0; i < block->shared_bytes; ++i) {
    if (bytes[i] != 0) kj_atomic_add(dirty, 1);
  }
}
KJ_KERNEL(shared_fill, (int, value)) {
  auto *bytes = static_cast<unsigned char *>(block->shared);
  for (size_t i = 0; i < block->shared_bytes; ++i) bytes[i] = static_cast<unsigned char>(value);
}

// Block `which` stores; the others spin until the launch is stopped, or *arrived says they need not.
KJ_KERNEL(store_at, (volatile int *, address), (uint32_t, which)) {
  if (block->index.x == which) *address = 1;
}
KJ_KERNEL(load_at, (const volatile int *, address), (int *, out)) { *out = *address; }
KJ_KERNEL(store_or_spin, (volatile int *, address), (uint32_t, which)) {
  if (block->index.x == which) {
    *address = 1;
  } else {
    for (volatile int spin = 0;; spin = spin + 1) {
    }
  }
}
KJ_KERNEL(spin, (volatile int *, go)) {
  while (*go == 0) {
  }
}
// Stays where locks are held: in malloc, and in stdio with a stream of the process.
KJ_KERNEL(allocate_forever, (volatile int *, arrived)) {
  if (block->index.x == 0) {
    while (kj_atomic_add(const_cast<int *>(arrived), 0) < 1) {
    }
    __builtin_trap();
  }
  for (;;) {
    free(malloc(1 << 20));
    fflush(stderr);
    kj_atomic_add(const_cast<int *>(arrived), 1);
  }
}
KJ_KERNEL(sleep_forever) {
  for (;;) pause();
}
KJ_KERNEL(divide, (volatile int *, by), (volatile int *, out)) { *out = 7 / *by; }
KJ_KERNEL(trap, (int, ignored)) {
  if (ignored == 0) __builtin_trap();
}
KJ_KERNEL(fail_assertion, (int, value)) {
  assert(value == 42);
}
KJ_KERNEL(throw_up, (int, value)) {
  if (value == 0) throw std::runtime_error("from a kernel");
}

namespace {
[[gnu::noinline]] int deeper(volatile int *depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  return *depth < 0 ? 0 : deeper(depth) + frame[0];
}
}  // namespace
KJ_KERNEL(overflow_stack, (volatile int *, depth)) { *depth = deeper(depth); }

KJ_KERNEL(flush_denormals) { _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON); }
KJ_KERNEL(make_denormal, (volatile float *, value)) { *value = *value * 0.5f; }
