// SPDX-License-Identifier: Apache-2.0

// What the arms of tests/replay_test.cc run: one source for the host driver and for GPUs. Every
// "answer" is out[i] = 2 * in[i] + 1, right or wrong in its own way.

#ifdef __CUDACC__

#include <cstdint>
#define KERNEL3(name, A, a, B, b, C, c) extern "C" __global__ void name(A a, B b, C c)
#define KERNEL4(name, A, a, B, b, C, c, D, d) extern "C" __global__ void name(A a, B b, C c, D d)
#define FOR_EACH(i, n)                                                                   \
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < (n); \
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
#define FIRST (blockIdx.x == 0 && threadIdx.x == 0)
extern "C" __device__ uint64_t calls_in_variable;
__device__ uint64_t calls_in_variable = 0;
__device__ uint64_t now_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

#else

#include <kjudge/host_kernel.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#define KERNEL3(name, A, a, B, b, C, c) KJ_KERNEL(name, (A, a), (B, b), (C, c))
#define KERNEL4(name, A, a, B, b, C, c, D, d) KJ_KERNEL(name, (A, a), (B, b), (C, c), (D, d))
#define FOR_EACH(i, n) for (int64_t i = block->index.x; i < (n); i += block->grid.x)
#define FIRST (block->index.x == 0)
KJ_VARIABLE(uint64_t, calls_in_variable) = 0;
static uint64_t now_ns() { return kj_global_timer(); }

#endif

// in double: the reference
KERNEL3(reference, double*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = 2.0 * static_cast<double>(in[i]) + 1.0;
}

// a reference too
KERNEL3(zeros, double*, out, const float*, in, int64_t, n) { FOR_EACH(i, n) out[i] = 0 * in[i]; }

// out[i] = max(in[i], 0), by a reference and by an arm
KERNEL3(rectified, double*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = in[i] > 0 ? in[i] : 0;
}
KERNEL3(right_rectified, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = in[i] > 0 ? in[i] : 0;
}

KERNEL3(right, float*, out, const float*, in, int64_t, n) { FOR_EACH(i, n) out[i] = 2 * in[i] + 1; }

// not quite
KERNEL3(sloppy, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = (2 * in[i] + 1) * 1.0001f;
}
KERNEL3(sloppier, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = (2 * in[i] + 1) * 1.0002f;
}

// right, and 1 or 20 ms slower
#define SPIN(ns)                    \
  const uint64_t start = now_ns();  \
  while (now_ns() - start < (ns)) { \
  }                                 \
  FOR_EACH(i, n) out[i] = 2 * in[i] + 1
KERNEL3(slow, float*, out, const float*, in, int64_t, n) { SPIN(1000000); }
KERNEL3(very_slow, float*, out, const float*, in, int64_t, n) { SPIN(20000000); }

KERNEL3(wrong_last, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = 2 * in[i] + (i == n - 1 ? 2 : 1);
}

// right on the values that a capture's made-up inputs have, which are never above 1e5
KERNEL3(wrong_when_large, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = in[i] > 1e5f ? 0 : 2 * in[i] + 1;
}

KERNEL3(unwritten_tail, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) {
    if (i < n - 10) out[i] = 2 * in[i] + 1;
  }
}

KERNEL3(writes_input, float*, out, float*, in, int64_t, n) {
  FOR_EACH(i, n) {
    out[i] = 2 * in[i] + 1;
    in[i] = 0;
  }
}

KERNEL3(reads_null, float*, out, const float*, in, int64_t, n) {
  const float* volatile nowhere = nullptr;
  FOR_EACH(i, n) out[i] = nowhere[i] + in[i];
}

KERNEL3(never_ends, float*, out, const float*, in, int64_t, n) {
  volatile float sum = 0;
  FOR_EACH(i, n) {
    for (;;) sum = sum + 1;
    out[i] = in[i];
  }
}

// other bits each time, within tolerance
KERNEL3(jitters, float*, out, const float*, in, int64_t, n) {
  const float noise = 1 + static_cast<float>(now_ns() % 7) * 3e-7f;
  FOR_EACH(i, n) out[i] = (2 * in[i] + 1) * noise;
}

// right only at the first call: counts in memory that the capture recorded as zero
KERNEL4(counts_in_state, float*, out, const float*, in, int64_t, n, int64_t*, calls) {
  FOR_EACH(i, n) out[i] = 2 * in[i] + 1 + static_cast<float>(calls[0]);
}
KERNEL4(adds_one, float*, out, const float*, in, int64_t, n, int64_t*, calls) {
  (void)out, (void)in, (void)n;
  if (FIRST) calls[0] += 1;
}

// the same, in a variable of the module
KERNEL3(counts_in_variable, float*, out, const float*, in, int64_t, n) {
  FOR_EACH(i, n) out[i] = 2 * in[i] + 1 + static_cast<float>(calls_in_variable);
}
KERNEL3(adds_one_to_variable, float*, out, const float*, in, int64_t, n) {
  (void)out, (void)in, (void)n;
  if (FIRST) calls_in_variable += 1;
}

// keeps a note in another shape's output region: `calls` lies there
KERNEL4(notes_elsewhere, float*, out, const float*, in, int64_t, n, int64_t*, calls) {
  if (FIRST) calls[0] += 1;
  FOR_EACH(i, n) out[i] = 2 * in[i] + 1;
}

// y is inout, and other after than before
KERNEL4(uses_up_sum, float*, out, const float*, in, int64_t, n, float*, y) {
  FOR_EACH(i, n) {
    out[i] = 2 * in[i] + 1 + y[i];
    y[i] += 1;
  }
}
KERNEL4(reference_sum, double*, out, const float*, in, int64_t, n, const float*, y) {
  FOR_EACH(i, n) out[i] = 2.0 * static_cast<double>(in[i]) + 1.0 + static_cast<double>(y[i]);
}

#ifndef __CUDACC__

// What only a kernel of the host driver can do to its worker.
KERNEL3(aborts, float*, out, const float*, in, int64_t, n) {
  (void)out, (void)in, (void)n;
  abort();
}
KERNEL3(exits, float*, out, const float*, in, int64_t, n) {
  (void)out, (void)in, (void)n;
  _exit(0);
}
KERNEL3(kills_itself, float*, out, const float*, in, int64_t, n) {
  (void)out, (void)in, (void)n;
  kill(getpid(), SIGKILL);
}
// sends through each descriptor what is no message; write() is closed to a worker
KERNEL3(lies, float*, out, const float*, in, int64_t, n) {
  (void)out, (void)in, (void)n;
  if (FIRST) {
    char nonsense[] = "nonsense, and long enough for a header";
    iovec part{nonsense, sizeof nonsense};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    for (int fd = 3; fd < 64; ++fd) (void)sendmsg(fd, &message, 0);
  }
}

#endif
