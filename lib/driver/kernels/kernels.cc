// SPDX-License-Identifier: Apache-2.0

// kjudge's own kernels, one source for two compilers: nvcc (-x cu) makes the fat binary, the host
// compiler the host driver's module. A GPU thread strides over the grid; a host block, which is one
// call, owns a contiguous range. Parameters are described in driver/kernels.h.
//
// Values must be the same bits everywhere: both compilers run without contraction of a*b+c
// (-fmad=false, -ffp-contract=off), and nothing here calls a math library.

#include "driver/kernels.h"

#include "driver/kernels/compare.h"
#include "driver/kernels/fill.h"
#include "driver/kernels/fill_structured.h"
#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "driver/kernels/rows.h"
#include "driver/kernels/thread.h"

using namespace kjudge;

KJ_OWN_KERNEL(empty, StampParams) {
  (void)p;
#ifndef __CUDACC__
  (void)block;
#endif
}

KJ_OWN_KERNEL(fill, FillParams) {
  if (p.kind == fill_bits) {
    fill_with_bits(p, my_block_range((p.count + 16 * kLanes - 1) / (16 * kLanes)));
  } else {
    fill_with_values(p, my_block_range((p.count + kTile - 1) / kTile));
  }
}

KJ_OWN_KERNEL(fill_structured, FillParams) {
  if (p.kind == fill_quantised || p.kind == fill_scales) {
    fill_blocks(p, my_block_share(p.kind == fill_scales ? p.count : p.count / p.row));
  } else {
    fill_with_structure(p, my_block_range((p.count + kTile - 1) / kTile));
  }
}

KJ_OWN_KERNEL(compare, CompareParams) { compare_range(p, my_block_range(p.count)); }

KJ_OWN_KERNEL(sum_parts, SumParams) {
  sum_parts(p, my_warp_share(p.count / p.row_size * parts_per_row(p.row_size)));
}

KJ_OWN_KERNEL(join_parts, JoinParams) { join_parts(p, my_warp_share(p.rows)); }

KJ_OWN_KERNEL(judge_rows, JudgeRowsParams) { judge_rows(p, my_block_range(p.rows)); }

KJ_OWN_KERNEL(bound_rows, CompareParams) {
  bound_rows(p, my_warp_share(p.count / p.row_size * parts_per_row(p.row_size)));
}

KJ_OWN_KERNEL(digest, DigestParams) {
  const Range range = my_block_range(p.bytes / 8);
  const std::uint64_t* words = at<const std::uint64_t>(p.address);
  std::uint64_t sum = 0;
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) {
    const std::uint64_t word = words[i];
    const std::uint64_t keyed = word ^ (i * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u);
    sum += (keyed & 0xffffffffu) * (keyed >> 32) + (word << 32 | word >> 32);
  }
  add(at<std::uint64_t>(p.digest), sum);
}

KJ_OWN_KERNEL(evict, EvictParams) {
#ifdef __CUDACC__
  struct alignas(16) Line {
    std::uint64_t low, high;
  };
  const Range range = my_block_range(p.bytes / 16);
  std::uint64_t sum = 0;
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) {
    const Line line = at<const Line>(p.address)[i];
    sum ^= line.low + line.high;
  }
#else
  const Range range = my_block_range(p.bytes / 64);  // one word of each line
  std::uint64_t sum = 0;
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    sum ^= __atomic_load_n(at<const std::uint64_t>(p.address) + i * 8, __ATOMIC_RELAXED);
  }
#endif
  // The buffer's contents never give this sum but once in 2^64: the loads must be done to know.
  if (sum == 0x9E3779B97F4A7C15u) *at<std::uint64_t>(p.sink) = sum;
}

KJ_OWN_KERNEL(scrub, ScrubParams) {
#ifdef __CUDACC__
  extern __shared__ std::uint32_t shared_words[];
  for (std::uint32_t i = threadIdx.x; i < p.shared_bytes / 4; i += blockDim.x) {
    reinterpret_cast<volatile std::uint32_t*>(shared_words)[i] = p.value;
  }
#else
  // Shared memory of the host driver belongs to a pool thread; this scrubs the one that runs it.
  volatile std::uint32_t* words = static_cast<volatile std::uint32_t*>(block->shared);
  for (std::uint64_t i = 0; i < block->shared_bytes / 4; ++i) words[i] = p.value;
#endif
}

KJ_OWN_KERNEL(block, BlockParams) {
  volatile std::uint32_t* flag = at<volatile std::uint32_t>(p.flag);
  const std::uint64_t start = global_timer();
  while (*flag != p.go) {
    if (global_timer() - start > p.timeout_ns) {
      *flag = p.gave_up;
      break;
    }
#ifdef __CUDACC__
    __nanosleep(100);
#else
    for (int i = 0; i < 16; ++i) __builtin_ia32_pause();
#endif
  }
#ifdef __CUDACC__
  __threadfence_system();
#else
  (void)block;
#endif
}

KJ_OWN_KERNEL(stamp, StampParams) {
#ifndef __CUDACC__
  (void)block;
#endif
  *at<volatile std::uint64_t>(p.stamp) = global_timer();
}

KJ_OWN_KERNEL(calibrate, CalibrateParams) {
  const std::uint64_t start_ns = global_timer(), start = cycles();
  std::uint64_t value = start | 1;
  for (std::uint64_t i = 0; i < p.iterations; ++i) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    value ^= value >> 29;
  }
  const std::uint64_t stop = cycles(), stop_ns = global_timer();
  std::uint64_t* result = at<std::uint64_t>(p.result);
#ifdef __CUDACC__
  if (blockIdx.x || threadIdx.x) return;
#else
  (void)block;
#endif
  // `value` is odd times odd plus odd, xored: the compiler cannot know it is never this.
  result[0] = value == 0x123456789u ? 0 : stop - start;
  result[1] = stop_ns - start_ns;
}
