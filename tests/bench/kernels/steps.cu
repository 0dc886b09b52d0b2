// SPDX-License-Identifier: Apache-2.0
// y = x, at the cost of `steps` dependent multiply-adds a thread, or of a copy where there are none.
// With SLOWER defined as 1 it does `permille` thousandths more of the same work.
#include <kjudge/submission.h>

#ifndef SLOWER
#define SLOWER 0
#endif

namespace {

constexpr int kThreads = 256;
constexpr int kPerBlock = 4096;  // elements that a block copies

// one is 1 and zero is 0, which the compiler does not know.
__global__ void loop(float* y, const float* x, int64_t n, int steps, float one, float zero) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  float value = x[i];
#pragma unroll 16
  for (int s = 0; s < steps; ++s) value = fmaf(value, one, zero);
  y[i] = value;
}

// Blocks beyond `blocks` copy the first parts again.
__global__ void copy(float4* y, const float4* x, unsigned blocks) {
  const int64_t first = int64_t{blockIdx.x % blocks} * (kPerBlock / 4);
  for (int i = threadIdx.x; i < kPerBlock / 4; i += kThreads) y[first + i] = x[first + i];
}

}  // namespace

extern "C" int kernel_fn(const kjudge_shape* shape, void* const* inputs, void* const* outputs,
                         cudaStream_t stream) {
  const int64_t n = kjudge_dim_of(shape, "n");
  const int64_t steps = kjudge_scalar_of(shape, "steps")->integer;
  const int64_t permille = SLOWER * kjudge_scalar_of(shape, "permille")->integer;
  if (steps > 0) {
    const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
    loop<<<blocks, kThreads, 0, stream>>>(static_cast<float*>(outputs[0]),
                                          static_cast<const float*>(inputs[0]), n,
                                          static_cast<int>(steps + steps * permille / 1000), 1, 0);
  } else {
    const auto blocks = static_cast<unsigned>(n / kPerBlock);
    copy<<<static_cast<unsigned>(blocks + blocks * permille / 1000), kThreads, 0, stream>>>(
        static_cast<float4*>(outputs[0]), static_cast<const float4*>(inputs[0]), blocks);
  }
  return cudaGetLastError();
}
