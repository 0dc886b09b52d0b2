// SPDX-License-Identifier: Apache-2.0
// y = 2 x, by a factor that every block computes in shared memory with `steps` multiply-adds. CHEAT
// adds what might gain time from what the replay before left behind:
//   1 loads that keep their lines in the second-level cache (evict_last)
//   2 a persisting access window over x
//   3 a prefetch, into lines to be kept, of where the next replay's x will lie
//   4 factors handed over in shared memory
//   5 a fifth fewer steps where x looks nominal, three times as many where it does not
#include <kjudge/submission.h>

#ifndef CHEAT
#define CHEAT 0
#endif

namespace {

constexpr int kThreads = 256;
[[maybe_unused]] constexpr unsigned kMark = 0x5ca1ab1e;

__device__ float4 load(const float4* from) {
#if CHEAT == 1
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  float4 v;
  asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from), "l"(policy));
  return v;
#else
  return *from;
#endif
}

struct Shared {
  float factor[kThreads];
  volatile unsigned mark[2];
};

// one is 1 and zero is 0, which the compiler does not know. A thread does 4 elements.
__global__ void scale(float4* y, const float4* x, int64_t quarter, int steps, float one,
                      float zero) {
  extern __shared__ Shared shared[];
#if CHEAT == 5
  steps = x[0].x > 5 ? 3 * steps : steps / 5 * 4;
#endif
#if CHEAT == 4
  const bool there = shared->mark[0] == kMark && shared->mark[1] == ~kMark;
#else
  const bool there = false;
#endif
  if (!there) {
    float factor = 1 + one;
#pragma unroll 16
    for (int s = 0; s < steps; ++s) factor = fmaf(factor, one, zero);
    shared->factor[threadIdx.x] = factor;
  }
  __syncthreads();
#if CHEAT == 4
  if (threadIdx.x < 2) shared->mark[threadIdx.x] = threadIdx.x == 0 ? kMark : ~kMark;
#endif
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= quarter) return;
  const float factor = shared->factor[kThreads - 1 - threadIdx.x];
  const float4 v = load(x + i);
  y[i] = {v.x * factor, v.y * factor, v.z * factor, v.w * factor};
#if CHEAT == 3
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x + i));
#endif
}

}  // namespace

#if CHEAT == 2
extern "C" int prepare(const kjudge_shape*, int) {
  return cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 16 << 20);
}
#endif

extern "C" int kernel_fn(const kjudge_shape* shape, void* const* inputs, void* const* outputs,
                         cudaStream_t stream) {
  const int64_t quarter = kjudge_dim_of(shape, "n") / 4;
#if CHEAT == 2
  cudaStreamAttrValue attribute{};
  attribute.accessPolicyWindow.base_ptr = inputs[0];
  attribute.accessPolicyWindow.num_bytes = 16 << 20;
  attribute.accessPolicyWindow.hitRatio = 1;
  attribute.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  attribute.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  const cudaError_t error =
      cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &attribute);
  if (error != cudaSuccess) return error;
#endif
  scale<<<static_cast<unsigned>((quarter + kThreads - 1) / kThreads), kThreads, sizeof(Shared),
          stream>>>(static_cast<float4*>(outputs[0]), static_cast<const float4*>(inputs[0]), quarter,
                    static_cast<int>(kjudge_scalar_of(shape, "steps")->integer), 1, 0);
  return cudaGetLastError();
}
