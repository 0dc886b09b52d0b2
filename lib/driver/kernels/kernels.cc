// SPDX-License-Identifier: Apache-2.0

// kjudge's own kernels, one source for two compilers: nvcc (-x cu) makes the fat binary, the host
// compiler the host driver's module. A GPU thread strides over the grid; a host block, which is one
// call, owns a contiguous range. Parameters are described in driver/kernels.h.
//
// Values must be the same bits everywhere: both compilers run without contraction of a*b+c
// (-fmad=false, -ffp-contract=off), and nothing here calls a math library.

#include "driver/kernels.h"

#include "driver/kernels/compare.h"
#include "driver/kernels/device.h"
#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "driver/kernels/rows.h"

using namespace kjudge;

namespace {

// ln(x) for x in (0, 1], exact arithmetic steps only: x = 2^k * y with y in [sqrt(1/2), sqrt(2)),
// ln(y) = 2 atanh((y-1)/(y+1)) by its series to z^9. Error below 2e-7 relative to the result's use
// in a normal deviate.
KJ_DEVICE float log_unit(float x) {
  std::uint32_t bits = bit_copy<std::uint32_t>(x);
  const std::int32_t k = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  bits -= static_cast<std::uint32_t>(k) << 23;
  const float y = bit_copy<float>(bits);
  const float z = (y - 1.0f) / (y + 1.0f);
  const float w = z * z;
  const float series =
      2.0f + w * (0.666666667f + w * (0.4f + w * (0.285714286f + w * 0.222222222f)));
  return static_cast<float>(k) * 0.693147181f + z * series;
}

// sin and cos of 2*pi*turn/2^32: the top two bits choose the quadrant, the rest is an angle in
// [0, pi/2) centered to [-pi/4, pi/4) for the polynomials.
KJ_DEVICE void sin_cos_turn(std::uint32_t turn, float* sine, float* cosine) {
  const std::uint32_t eighth = turn + 0x20000000u;
  const std::uint32_t quadrant = eighth >> 30;
  const float angle =
      static_cast<float>(static_cast<std::int32_t>(eighth & 0x3fffffffu) - 0x20000000) *
      1.46291807926715968e-9f;  // pi / 2^31
  const float a2 = angle * angle;
  const float s =
      angle * (1.0f + a2 * (-0.166666667f + a2 * (8.33333333e-3f + a2 * -1.98412698e-4f)));
  const float c =
      1.0f + a2 * (-0.5f + a2 * (4.16666667e-2f + a2 * (-1.38888889e-3f + a2 * 2.48015873e-5f)));
  const float swap_s = quadrant & 1 ? c : s;
  const float swap_c = quadrant & 1 ? s : c;
  *sine = quadrant & 2 ? -swap_s : swap_s;
  *cosine = (quadrant + 1) & 2 ? -swap_c : swap_c;
}

// Values of kLanes consecutive groups of 4 elements; lane-wise loops, which vectorize on the host.
struct Values {
  float value[4 * kLanes];
};

KJ_DEVICE void random_words(std::uint64_t key, std::uint64_t group,
                            std::uint32_t (*words)[kLanes]) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const PhiloxWords made = philox(key, group + static_cast<unsigned>(lane));
    for (int i = 0; i < 4; ++i) words[i][lane] = made.word[i];
  }
}

KJ_DEVICE void fill_with_bits(const FillParams& p, Range tiles) {
  for (std::uint64_t tile = tiles.begin; tile < tiles.end; tile += tiles.step) {
    std::uint32_t words[4][kLanes];
    const std::uint64_t group = tile * kLanes;
    random_words(p.key, group, words);
    if ((group + kLanes) * 16 <= p.count) {
      std::uint32_t* to = at<std::uint32_t>(p.address) + group * 4;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int i = 0; i < 4; ++i) to[lane * 4 + i] = words[i][lane];
      }
    } else {
      for (std::uint64_t byte = group * 16; byte < p.count; ++byte) {
        at<std::uint8_t>(p.address)[byte] =
            static_cast<std::uint8_t>(words[byte % 16 / 4][byte / 16 - group] >> (8 * (byte % 4)));
      }
    }
  }
}

KJ_DEVICE Values uniform_values(std::uint64_t key, std::uint64_t group, float a, float width) {
  std::uint32_t words[4][kLanes];
  random_words(key, group, words);
  Values made;
  for (int i = 0; i < 4; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float unit = static_cast<float>(static_cast<std::int32_t>(words[i][lane] >> 8)) *
                         5.9604644775390625e-8f;  // 2^-24
      made.value[4 * lane + i] = a + width * unit;
    }
  }
  return made;
}

// Box-Muller on pairs of words.
KJ_DEVICE Values normal_values(std::uint64_t key, std::uint64_t group, float mean,
                               float deviation) {
  std::uint32_t words[4][kLanes];
  random_words(key, group, words);
  Values made;
  for (int i = 0; i < 4; i += 2) {
    for (int lane = 0; lane < kLanes; ++lane) {
      // (0, 1]: 24 bits plus half a step keeps the logarithm finite.
      const float unit = static_cast<float>(static_cast<std::int32_t>(words[i][lane] >> 8)) *
                             5.9604644775390625e-8f +
                         2.98023223876953125e-8f;
      const float radius = root(-2.0f * log_unit(unit));
      float sine, cosine;
      sin_cos_turn(words[i + 1][lane], &sine, &cosine);
      made.value[4 * lane + i] = mean + deviation * (radius * cosine);
      made.value[4 * lane + i + 1] = mean + deviation * (radius * sine);
    }
  }
  return made;
}

KJ_DEVICE void store_integers(const FillParams& p, std::uint64_t first, std::uint64_t count) {
  const std::int64_t low = static_cast<std::int64_t>(p.a);
  const std::uint64_t span = static_cast<std::uint64_t>(static_cast<std::int64_t>(p.b) - low) + 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + i;
    const PhiloxWords words = philox(p.key, index / 2);
    const std::uint64_t wide =
        static_cast<std::uint64_t>(words.word[index % 2 * 2]) << 32 | words.word[index % 2 * 2 + 1];
    const std::int64_t value = low + static_cast<std::int64_t>(span ? wide % span : wide);
    if (static_cast<DType>(p.dtype) == DType::int64) {
      at<std::int64_t>(p.address)[index] = value;
    } else {
      store_element(static_cast<DType>(p.dtype), at<void>(p.address), index,
                    static_cast<double>(value), true);
    }
  }
}

}  // namespace

KJ_OWN_KERNEL(empty, StampParams) {
  (void)p;
#ifndef __CUDACC__
  (void)block;
#endif
}

KJ_OWN_KERNEL(fill, FillParams) {
  const DType dtype = static_cast<DType>(p.dtype);
  if (p.kind == fill_bits) {
    fill_with_bits(p, my_block_range((p.count + 16 * kLanes - 1) / (16 * kLanes)));
    return;
  }
  constexpr std::uint64_t kTile = 4 * kLanes;
  const Range range = my_block_range((p.count + kTile - 1) / kTile);
  for (std::uint64_t tile = range.begin; tile < range.end; tile += range.step) {
    const std::uint64_t first = tile * kTile;
    const std::uint64_t count = first + kTile <= p.count ? kTile : p.count - first;
    if (p.kind == fill_integers) {
      store_integers(p, first, count);
      continue;
    }
    Values made;
    if (p.kind == fill_normal) {
      made = normal_values(p.key, first / 4, static_cast<float>(p.a), static_cast<float>(p.b));
    } else if (p.kind == fill_uniform) {
      made =
          uniform_values(p.key, first / 4, static_cast<float>(p.a), static_cast<float>(p.b - p.a));
    }
    if (p.kind == fill_constant) {
      for (std::uint64_t i = 0; i < count; ++i) {
        store_element(dtype, at<void>(p.address), first + i, p.a, true);
      }
    } else if (dtype == DType::float32) {
      for (std::uint64_t i = 0; i < count; ++i) at<float>(p.address)[first + i] = made.value[i];
    } else {
      for (std::uint64_t i = 0; i < count; ++i) {
        store_element(dtype, at<void>(p.address), first + i, static_cast<double>(made.value[i]),
                      true);
      }
    }
  }
}

KJ_OWN_KERNEL(compare, CompareParams) { compare_range(p, my_block_range(p.count)); }

KJ_OWN_KERNEL(sum_parts, SumParams) {
  sum_parts(p, my_row_range(p.count / p.row_size * parts_per_row(p.row_size)));
}

KJ_OWN_KERNEL(join_parts, JoinParams) { join_parts(p, my_row_range(p.rows)); }

KJ_OWN_KERNEL(judge_rows, JudgeRowsParams) { judge_rows(p, my_block_range(p.rows)); }

KJ_OWN_KERNEL(bound_rows, CompareParams) {
  bound_rows(p, my_row_range(p.count / p.row_size * parts_per_row(p.row_size)));
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
