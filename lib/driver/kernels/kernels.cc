// SPDX-License-Identifier: Apache-2.0

// kjudge's own kernels, one source for two compilers: nvcc (-x cu) makes the fat binary, the host
// compiler the host driver's module. A GPU thread strides over the grid; a host block, which is one
// call, owns a contiguous range. Parameters are described in driver/kernels.h.
//
// Values must be the same bits everywhere: both compilers run without contraction of a*b+c
// (-fmad=false, -ffp-contract=off), and nothing here calls a math library.

#include "driver/kernels.h"

#include "driver/kernels/fill.h"
#include "driver/kernels/fill_structured.h"
#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "driver/kernels/thread.h"

using namespace kjudge;

namespace {

// What one thread found; merged into the report once at the end.
struct Found {
  std::uint64_t mismatched = 0, first_index = ~std::uint64_t{0}, nonfinite = 0, still_poisoned = 0;
  double worst_abs = 0, worst_rel = 0;
};

KJ_DEVICE bool finite(double x) { return x - x == 0; }
KJ_DEVICE double magnitude(double x) { return x < 0 ? -x : x; }

KJ_DEVICE bool poisoned(const CompareParams& p, std::uint64_t index) {
  const DType dtype = static_cast<DType>(p.dtype);
  int bits = 8;
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      bits = 64;
      break;
    case DType::float32:
    case DType::int32:
      bits = 32;
      break;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
      bits = 16;
      break;
    case DType::float4_e2m1:
      bits = 4;
      break;
    default:
      break;
  }
  if (bits == 4) {
    const unsigned shift = index % 2 * 4;
    return ((at<const std::uint8_t>(p.out)[index / 2] ^ poison_byte(p.poison_key, index / 2)) >>
                shift &
            15) == 0;
  }
  const unsigned bytes = static_cast<unsigned>(bits) / 8;
  for (unsigned i = 0; i < bytes; ++i) {
    if (at<const std::uint8_t>(p.out)[index * bytes + i] !=
        poison_byte(p.poison_key, index * bytes + i)) {
      return false;
    }
  }
  return true;
}

// exact on 64-bit integers, which a double cannot hold
KJ_DEVICE bool same_int64(const CompareParams& p, std::uint64_t index) {
  return at<const std::int64_t>(p.out)[index] == at<const std::int64_t>(p.expected)[index];
}

KJ_DEVICE void compare_element(const CompareParams& p, std::uint64_t index, Found* found) {
  const DType dtype = static_cast<DType>(p.dtype);
  const DType expected_dtype = static_cast<DType>(p.expected_dtype);
  const double out = load_element(dtype, at<const void>(p.out), index);
  const double expected = rounded_to(
      dtype, load_element(expected_dtype, at<const void>(p.expected), index), p.saturate != 0);
  const bool both_finite = finite(out) && finite(expected);
  const double error = magnitude(out - expected);
  bool match;
  if (!both_finite) {
    const bool both_nan = out != out && expected != expected;
    match = both_nan || out == expected;
  } else if (p.kind == compare_exact) {
    match = out == expected;
    if (match && p.signed_zero && out == 0) {
      match = (bit_copy<std::uint64_t>(out) ^ bit_copy<std::uint64_t>(expected)) >> 63 == 0;
    }
    if (dtype == DType::int64 && expected_dtype == DType::int64) match = same_int64(p, index);
  } else {
    match = error <= p.atol + p.rtol * magnitude(expected);
  }
  if (both_finite) {
    if (error > found->worst_abs) found->worst_abs = error;
    if (expected != 0 && error / magnitude(expected) > found->worst_rel) {
      found->worst_rel = error / magnitude(expected);
    }
  }
  if (match) return;
  ++found->mismatched;
  if (!both_finite) ++found->nonfinite;
  if (index < found->first_index) found->first_index = index;
  if (poisoned(p, index)) ++found->still_poisoned;
}

KJ_DEVICE void merge(const Found& found, CompareReport* report) {
  if (found.mismatched) {
    add(&report->mismatched, found.mismatched);
    keep_smaller(&report->first_index, found.first_index);
    if (found.nonfinite) add(&report->nonfinite, found.nonfinite);
    if (found.still_poisoned) add(&report->still_poisoned, found.still_poisoned);
  }
  if (found.worst_abs > 0)
    keep_larger(&report->worst_abs_bits, bit_copy<std::uint64_t>(found.worst_abs));
  if (found.worst_rel > 0)
    keep_larger(&report->worst_rel_bits, bit_copy<std::uint64_t>(found.worst_rel));
}

#ifndef __CUDACC__
// The host's quick way for the usual case, float32 out against float64 or float32 expected: a tile
// that passes whole is done with vector instructions; one with anything odd goes element by
// element.
template <class Expected>
bool tile_passes(const CompareParams& p, std::uint64_t first, int count, Found* found) {
  const float* out = at<const float>(p.out) + first;
  const Expected* expected = at<const Expected>(p.expected) + first;
  double worst_abs = 0, worst_rel = 0;
  int bad = 0;
  for (int i = 0; i < count; ++i) {
    const double o = out[i];
    const double e = static_cast<double>(static_cast<float>(expected[i]));
    const double error = __builtin_fabs(o - e);
    const double size = __builtin_fabs(e);
    const double relative = error / (size > 0 ? size : 1e300);
    bad += !(error <= p.atol + p.rtol * size);
    // An infinite expected value would pass with an infinite tolerance, and an overflowed one may
    // have to be saturated: by element.
    bad += !(size <= 3.4028234663852886e38);
    worst_abs = error > worst_abs ? error : worst_abs;
    worst_rel = relative > worst_rel ? relative : worst_rel;
  }
  if (bad) return false;
  if (worst_abs > found->worst_abs) found->worst_abs = worst_abs;
  if (worst_rel > found->worst_rel) found->worst_rel = worst_rel;
  return true;
}
#endif

}  // namespace

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

KJ_OWN_KERNEL(compare, CompareParams) {
  Found found;
  const Range range = my_block_range(p.count);
#ifdef __CUDACC__
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) compare_element(p, i, &found);
  // One atomic per warp for the errors, which every element has.
  for (int lane = 16; lane > 0; lane /= 2) {
    const double abs = __shfl_down_sync(0xffffffffu, found.worst_abs, lane);
    const double rel = __shfl_down_sync(0xffffffffu, found.worst_rel, lane);
    if (abs > found.worst_abs) found.worst_abs = abs;
    if (rel > found.worst_rel) found.worst_rel = rel;
  }
  if (threadIdx.x % 32) found.worst_abs = found.worst_rel = 0;
#else
  const bool quick = p.kind == compare_close && static_cast<DType>(p.dtype) == DType::float32;
  for (std::uint64_t i = range.begin; i < range.end;) {
    const int count = static_cast<int>(range.end - i < 512 ? range.end - i : 512);
    const bool passed = quick && static_cast<DType>(p.expected_dtype) == DType::float64
                            ? tile_passes<double>(p, i, count, &found)
                        : quick && static_cast<DType>(p.expected_dtype) == DType::float32
                            ? tile_passes<float>(p, i, count, &found)
                            : false;
    if (!passed) {
      for (int k = 0; k < count; ++k) compare_element(p, i + static_cast<unsigned>(k), &found);
    }
    i += static_cast<unsigned>(count);
  }
#endif
  merge(found, at<CompareReport>(p.report));
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
