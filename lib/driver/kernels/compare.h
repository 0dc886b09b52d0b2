// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element by element: the kernel `compare`.

#include "driver/kernels.h"
#include "driver/kernels/device.h"

namespace kjudge {

// What one thread found; merged into the report once at the end.
struct Found {
  std::uint64_t mismatched = 0, first_index = ~std::uint64_t{0}, nonfinite = 0, still_poisoned = 0;
  double worst_abs = 0, worst_rel = 0;
  bool any_nonzero = false;
};

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
  if (expected != 0) found->any_nonzero = true;
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
  if (found.any_nonzero) keep_larger(&report->any_nonzero, 1);
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
  int bad = 0, nonzero = 0;
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
    nonzero |= size > 0;
    worst_abs = error > worst_abs ? error : worst_abs;
    worst_rel = relative > worst_rel ? relative : worst_rel;
  }
  if (bad) return false;
  if (nonzero) found->any_nonzero = true;
  if (worst_abs > found->worst_abs) found->worst_abs = worst_abs;
  if (worst_rel > found->worst_rel) found->worst_rel = worst_rel;
  return true;
}
#endif

KJ_DEVICE void compare_range(const CompareParams& p, Range range) {
  Found found;
#ifdef __CUDACC__
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) {
    compare_element(p, p.first + i, &found);
  }
  // One atomic per warp for the errors, which every element has.
  for (int lane = 16; lane > 0; lane /= 2) {
    const double abs = __shfl_down_sync(0xffffffffu, found.worst_abs, lane);
    const double rel = __shfl_down_sync(0xffffffffu, found.worst_rel, lane);
    if (abs > found.worst_abs) found.worst_abs = abs;
    if (rel > found.worst_rel) found.worst_rel = rel;
  }
  found.any_nonzero = __any_sync(0xffffffffu, found.any_nonzero);
  if (threadIdx.x % 32) {
    found.worst_abs = found.worst_rel = 0;
    found.any_nonzero = false;
  }
#else
  const bool quick = p.kind == compare_close && static_cast<DType>(p.dtype) == DType::float32;
  for (std::uint64_t i = range.begin; i < range.end;) {
    const int count = static_cast<int>(range.end - i < 512 ? range.end - i : 512);
    const bool passed = quick && static_cast<DType>(p.expected_dtype) == DType::float64
                            ? tile_passes<double>(p, p.first + i, count, &found)
                        : quick && static_cast<DType>(p.expected_dtype) == DType::float32
                            ? tile_passes<float>(p, p.first + i, count, &found)
                            : false;
    if (!passed) {
      for (int k = 0; k < count; ++k) {
        compare_element(p, p.first + i + static_cast<unsigned>(k), &found);
      }
    }
    i += static_cast<unsigned>(count);
  }
#endif
  merge(found, at<CompareReport>(p.report));
}

}  // namespace kjudge
