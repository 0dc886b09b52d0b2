// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element by element: the kernel `compare`.

#include "driver/kernels.h"
#include "driver/kernels/number.h"
#include "driver/kernels/thread.h"

namespace kjudge {

KJ_DEVICE bool finite(double x) { return x - x == 0; }
KJ_DEVICE double magnitude(double x) { return x < 0 ? -x : x; }

// What one thread found; merged into the report once at the end.
struct Found {
  std::uint64_t mismatched = 0, first_index = ~std::uint64_t{0}, nonfinite = 0, still_poisoned = 0;
  double worst_abs = 0, worst_rel = 0;
  bool any_nonzero = false;
  std::uint64_t beyond = 0, first_beyond = ~std::uint64_t{0}, worst_steps = 0;
};

// What an element may be off beside its own share.
struct Allowance {
  double atol = 0;
  bool anything = false;  // that is finite
};

KJ_DEVICE bool floating(DType dtype) {
  return static_cast<int>(dtype) <= static_cast<int>(DType::float4_e2m1);
}

KJ_DEVICE int element_bits(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      return 64;
    case DType::float32:
    case DType::int32:
      return 32;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
      return 16;
    case DType::float4_e2m1:
      return 4;
    default:
      return 8;
  }
}

KJ_DEVICE bool poisoned(const CompareParams& p, std::uint64_t index) {
  const DType dtype = static_cast<DType>(p.dtype);
  const int bits = element_bits(dtype);
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

KJ_DEVICE std::uint64_t load_bits(DType dtype, const void* base, std::uint64_t index) {
  switch (element_bits(dtype)) {
    case 64:
      return static_cast<const std::uint64_t*>(base)[index];
    case 32:
      return static_cast<const std::uint32_t*>(base)[index];
    case 16:
      return static_cast<const std::uint16_t*>(base)[index];
    case 8:
      return static_cast<const std::uint8_t*>(base)[index];
    default:
      return static_cast<const std::uint8_t*>(base)[index / 2] >> (index % 2 * 4) & 15u;
  }
}

// Steps between two codes of a type: floats are sign and magnitude, integers two's complement.
KJ_DEVICE std::uint64_t steps_between(DType dtype, std::uint64_t a, std::uint64_t b) {
  const int width = element_bits(dtype);
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  if (floating(dtype) && ((a ^ b) & sign)) return (a & (sign - 1)) + (b & (sign - 1));
  if (floating(dtype)) {
    a &= sign - 1;
    b &= sign - 1;
  } else if (dtype != DType::uint8 && dtype != DType::boolean) {
    // Moves the order of signed integers to that of unsigned ones.
    a ^= sign;
    b ^= sign;
  }
  return a > b ? a - b : b - a;
}

// Of elements finite on both sides.
KJ_DEVICE std::uint64_t code_steps(const CompareParams& p, std::uint64_t index, double expected) {
  const DType dtype = static_cast<DType>(p.dtype);
  const std::uint64_t code = load_bits(dtype, at<const void>(p.out), index);
  if (dtype == DType::int64 && static_cast<DType>(p.expected_dtype) == DType::int64) {
    return steps_between(dtype, code, load_bits(dtype, at<const void>(p.expected), index));
  }
  std::uint64_t wanted = 0;
  store_element(dtype, &wanted, 0, expected, p.saturate != 0);
  return steps_between(dtype, code, wanted);
}

KJ_DEVICE void compare_element(const CompareParams& p, const Allowance& allowed,
                               std::uint64_t index, Found* found) {
  const DType dtype = static_cast<DType>(p.dtype);
  const DType expected_dtype = static_cast<DType>(p.expected_dtype);
  const double out = load_element(dtype, at<const void>(p.out), index);
  double expected = load_element(expected_dtype, at<const void>(p.expected), index);
  // Within a type, only what saturates changes.
  if (expected_dtype != dtype || p.saturate) {
    expected = rounded_to(dtype, expected, p.saturate != 0);
  }
  const bool both_finite = finite(out) && finite(expected);
  const double error = magnitude(out - expected);
  if (expected != 0) found->any_nonzero = true;
  bool match, beyond = false;
  if (!both_finite) {
    const bool both_nan = out != out && expected != expected;
    match = both_nan || out == expected;
    beyond = p.kind == compare_codes && !match;
  } else if (p.kind == compare_exact) {
    match = out == expected;
    // GCC 12 turns a double into an integer and back by truncation, which leaves -0 as it is.
    if (match && p.signed_zero && out == 0 && floating(dtype)) {
      match = (bit_copy<std::uint64_t>(out) ^ bit_copy<std::uint64_t>(expected)) >> 63 == 0;
    }
    if (dtype == DType::int64 && expected_dtype == DType::int64) match = same_int64(p, index);
  } else if (p.kind == compare_codes) {
    const std::uint64_t steps = code_steps(p, index, expected);
    match = steps == 0;
    beyond = steps > p.within;
    if (steps > found->worst_steps) found->worst_steps = steps;
  } else {
    match = allowed.anything || error <= allowed.atol + p.rtol * magnitude(expected);
  }
  if (both_finite) {
    if (error > found->worst_abs) found->worst_abs = error;
    // A division only where its rounded quotient can be larger.
    if (expected != 0 && error > 0 &&
        error >= found->worst_rel * magnitude(expected) * (1 - 0x1p-50)) {
      const double relative = error / magnitude(expected);
      if (relative > found->worst_rel) found->worst_rel = relative;
    }
  }
  if (match) return;
  ++found->mismatched;
  if (!both_finite) ++found->nonfinite;
  if (index < found->first_index) found->first_index = index;
  if (poisoned(p, index)) ++found->still_poisoned;
  if (!beyond) return;
  ++found->beyond;
  if (index < found->first_beyond) found->first_beyond = index;
}

KJ_DEVICE void merge(Found found, CompareReport* report) {
#ifdef __CUDACC__
  // One atomic per warp for what every element has.
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
#endif
  if (found.mismatched) {
    add(&report->mismatched, found.mismatched);
    keep_smaller(&report->first_index, found.first_index);
    if (found.nonfinite) add(&report->nonfinite, found.nonfinite);
    if (found.still_poisoned) add(&report->still_poisoned, found.still_poisoned);
    if (found.beyond) {
      add(&report->beyond, found.beyond);
      keep_smaller(&report->first_beyond, found.first_beyond);
    }
    if (found.worst_steps) keep_larger(&report->worst_steps, found.worst_steps);
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
// element. Lanes, because no compiler may reorder the maximum of doubles.
constexpr int kTileLanes = 16;
constexpr std::uint64_t kTileElements = 512;

template <class Expected>
bool tile_passes(const CompareParams& p, double atol, std::uint64_t first, std::uint64_t count,
                 Found* found) {
  const float* out = at<const float>(p.out) + first;
  const Expected* expected = at<const Expected>(p.expected) + first;
  double worst_abs[kTileLanes] = {}, worst_rel[kTileLanes] = {};
  std::int64_t bad[kTileLanes] = {}, nonzero[kTileLanes] = {};
  for (std::uint64_t i = 0; i < count; i += kTileLanes) {
    for (int lane = 0; lane < kTileLanes; ++lane) {
      const double o = out[i + static_cast<unsigned>(lane)];
      const double e =
          static_cast<double>(static_cast<float>(expected[i + static_cast<unsigned>(lane)]));
      const double error = __builtin_fabs(o - e);
      const double size = __builtin_fabs(e);
      const double relative = error / (size > 0 ? size : __builtin_inf());  // 0 where there is none
      bad[lane] |= !(error <= atol + p.rtol * size);
      // An infinite expected value would pass with an infinite tolerance, and an overflowed one may
      // have to be saturated: by element.
      bad[lane] |= !(size <= 3.4028234663852886e38);
      nonzero[lane] |= size > 0;
      worst_abs[lane] = error > worst_abs[lane] ? error : worst_abs[lane];
      worst_rel[lane] = relative > worst_rel[lane] ? relative : worst_rel[lane];
    }
  }
  for (int lane = 0; lane < kTileLanes; ++lane) {
    if (bad[lane]) return false;
  }
  for (int lane = 0; lane < kTileLanes; ++lane) {
    if (nonzero[lane]) found->any_nonzero = true;
    if (worst_abs[lane] > found->worst_abs) found->worst_abs = worst_abs[lane];
    if (worst_rel[lane] > found->worst_rel) found->worst_rel = worst_rel[lane];
  }
  return true;
}

inline void compare_tiles(const CompareParams& p, const Allowance& allowed, std::uint64_t begin,
                          std::uint64_t end, Found* found) {
  const DType expected_dtype = static_cast<DType>(p.expected_dtype);
  const bool quick = (p.kind == compare_close || p.kind == compare_row_bound) &&
                     static_cast<DType>(p.dtype) == DType::float32 && !allowed.anything;
  for (std::uint64_t i = begin; i < end;) {
    // Whole lanes of a tile, then what is left of it.
    std::uint64_t count = end - i < kTileElements ? end - i : kTileElements;
    if (count > kTileLanes) count -= count % kTileLanes;
    const bool whole = quick && count % kTileLanes == 0;
    const bool passed = whole && expected_dtype == DType::float64
                            ? tile_passes<double>(p, allowed.atol, i, count, found)
                            : whole && expected_dtype == DType::float32 &&
                                  tile_passes<float>(p, allowed.atol, i, count, found);
    if (!passed) {
      for (std::uint64_t k = i; k < i + count; ++k) compare_element(p, allowed, k, found);
    }
    i += count;
  }
}
#endif

KJ_DEVICE void compare_range(const CompareParams& p, Range range) {
  Found found;
  Allowance allowed;
  allowed.atol = p.atol;
#ifdef __CUDACC__
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) {
    compare_element(p, allowed, p.first + i, &found);
  }
#else
  compare_tiles(p, allowed, p.first + range.begin, p.first + range.end, &found);
#endif
  merge(found, at<CompareReport>(p.report));
}

}  // namespace kjudge
