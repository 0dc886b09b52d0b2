// SPDX-License-Identifier: Apache-2.0

// One source for two compilers, as kernels.cc. Parameters: driver/measuring_kernels.h.

#include "driver/kernels/thread.h"
#include "driver/measuring_kernels.h"

using namespace kjudge;

namespace {

struct alignas(16) Line {
  std::uint64_t low, high;
};

#ifdef __CUDACC__
constexpr int kChains = kGpuChains;
KJ_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
KJ_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
#else
constexpr int kChains = kHostChains;
KJ_DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
KJ_DEVICE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif

// Every chain tends to 1 from above.
template <class T>
KJ_DEVICE void multiply_add(const MultiplyAddParams& p) {
  T sums[kChains];
  for (int j = 0; j < kChains; ++j) sums[j] = static_cast<T>(j + 2);
#pragma unroll 16
  for (std::uint64_t i = 0; i < p.iterations; ++i) {
    for (int j = 0; j < kChains; ++j) {
      sums[j] = fused(sums[j], static_cast<T>(0.75), static_cast<T>(0.25));
    }
  }
  T all = 0;
  for (int j = 0; j < kChains; ++j) all += sums[j];
  if (all == static_cast<T>(p.never)) *at<std::uint64_t>(p.sink) = 1;
}

}  // namespace

// Four loads at a time: one in flight for each thread is not enough for the fastest memory.
KJ_OWN_KERNEL(read, ReadParams) {
  const Range range = my_block_range(p.bytes / sizeof(Line));
  const Line* from = at<const Line>(p.from);
  std::uint64_t sum = 0;
  std::uint64_t i = range.begin;
  for (; i + 3 * range.step < range.end; i += 4 * range.step) {
    const Line a = from[i], b = from[i + range.step], c = from[i + 2 * range.step],
               d = from[i + 3 * range.step];
    sum ^= a.low ^ a.high ^ b.low ^ b.high ^ c.low ^ c.high ^ d.low ^ d.high;
  }
  for (; i < range.end; i += range.step) sum ^= from[i].low ^ from[i].high;
  // Contents give this sum but once in 2^64.
  if (sum == 0x9E3779B97F4A7C15u) *at<std::uint64_t>(p.sink) = sum;
}

KJ_OWN_KERNEL(copy, CopyParams) {
  const Range range = my_block_range(p.bytes / sizeof(Line));
  const Line* from = at<const Line>(p.from);
  Line* to = at<Line>(p.to);
  std::uint64_t i = range.begin;
  for (; i + 3 * range.step < range.end; i += 4 * range.step) {
    const Line a = from[i], b = from[i + range.step], c = from[i + 2 * range.step],
               d = from[i + 3 * range.step];
    to[i] = a;
    to[i + range.step] = b;
    to[i + 2 * range.step] = c;
    to[i + 3 * range.step] = d;
  }
  for (; i < range.end; i += range.step) to[i] = from[i];
}

KJ_OWN_KERNEL(multiply_add_32, MultiplyAddParams) {
  multiply_add<float>(p);
#ifndef __CUDACC__
  (void)block;
#endif
}

KJ_OWN_KERNEL(multiply_add_64, MultiplyAddParams) {
  multiply_add<double>(p);
#ifndef __CUDACC__
  (void)block;
#endif
}
