// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a kernel of kjudge's runs: as one thread of a GPU's grid, which strides over it, or as one
// block of the host driver, which is one call and owns a contiguous range.

#include <cstdint>

#ifdef __CUDACC__

#define KJ_OWN_KERNEL(kernel, Params) extern "C" __global__ void kjudge_##kernel(const Params p)
#define KJ_ONE_KERNEL_SOURCE_LANES 1

#else

#include <kjudge/host_kernel.h>
#include <time.h>

#define KJ_OWN_KERNEL(kernel, Params) KJ_KERNEL(kjudge_##kernel, (Params, p))
#define KJ_ONE_KERNEL_SOURCE_LANES 16

#endif

namespace kjudge {

// What one thread (GPU) or block (host) works on: [begin, end) in steps.
struct Range {
  std::uint64_t begin, end, step;
};

// Philox groups are generated so many at a time: 1 on a GPU, a vector's worth on the host.
constexpr int kLanes = KJ_ONE_KERNEL_SOURCE_LANES;
// Elements that are made at a time: whole Philox groups, so that no byte is shared with another.
constexpr std::uint64_t kTile = 4 * kLanes;

#ifdef __CUDACC__

#define KJ_DEVICE __device__ __forceinline__

KJ_DEVICE Range my_range(std::uint64_t count) {
  return {blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x, count,
          static_cast<std::uint64_t>(gridDim.x) * blockDim.x};
}
KJ_DEVICE void add(std::uint64_t* to, std::uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}
KJ_DEVICE void keep_larger(std::uint64_t* to, std::uint64_t value) {
  atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}
KJ_DEVICE void keep_smaller(std::uint64_t* to, std::uint64_t value) {
  atomicMin(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}
KJ_DEVICE std::uint64_t global_timer() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}
KJ_DEVICE std::uint64_t cycles() { return static_cast<std::uint64_t>(clock64()); }
KJ_DEVICE float root(float x) { return __fsqrt_rn(x); }
KJ_DEVICE double root(double x) { return __dsqrt_rn(x); }
#define my_block_range(p_count) my_range(p_count)
#define my_block_share(p_count) my_range(p_count)

// A warp for each item.
KJ_DEVICE Range my_warp_share(std::uint64_t count) {
  const Range threads = my_range(count);
  return {threads.begin / 32, count, threads.step / 32};
}

#else

#define KJ_DEVICE inline

// Contiguous, aligned to 1024 so that blocks never share a line or a packed byte.
KJ_DEVICE Range host_range(const kj_block* block, std::uint64_t count) {
  const std::uint64_t chunk = (count / block->grid.x / 1024 + 1) * 1024;
  const std::uint64_t begin = chunk * block->index.x;
  const std::uint64_t end = begin + chunk < count ? begin + chunk : count;
  return {begin < count ? begin : count, end, 1};
}
// Of items that are much work each, an even share.
KJ_DEVICE Range host_share(const kj_block* block, std::uint64_t count) {
  const std::uint64_t each = count / block->grid.x, rest = count % block->grid.x;
  const std::uint64_t index = block->index.x;
  const std::uint64_t begin = each * index + (index < rest ? index : rest);
  return {begin, begin + each + (index < rest ? 1 : 0), 1};
}
KJ_DEVICE void add(std::uint64_t* to, std::uint64_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
KJ_DEVICE void keep_larger(std::uint64_t* to, std::uint64_t value) {
  std::uint64_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value > seen &&
         !__atomic_compare_exchange_n(to, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
KJ_DEVICE void keep_smaller(std::uint64_t* to, std::uint64_t value) {
  std::uint64_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value < seen &&
         !__atomic_compare_exchange_n(to, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
KJ_DEVICE std::uint64_t global_timer() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}
KJ_DEVICE std::uint64_t cycles() { return __builtin_ia32_rdtsc(); }
KJ_DEVICE float root(float x) { return __builtin_sqrtf(x); }
KJ_DEVICE double root(double x) { return __builtin_sqrt(x); }
#define my_block_range(p_count) host_range(block, p_count)
#define my_block_share(p_count) host_share(block, p_count)
#define my_warp_share(p_count) host_share(block, p_count)

#endif

template <class T>
KJ_DEVICE T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace kjudge
