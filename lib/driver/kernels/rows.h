// SPDX-License-Identifier: Apache-2.0
#pragma once

// Row by row: the kernels `sum_parts`, `join_parts`, `judge_rows` and `bound_rows`. A warp sums a
// part, each thread one lane; on the host one call holds all lanes. The order of additions is that
// of RowSums.

#include "driver/kernels.h"
#include "driver/kernels/compare.h"
#include "driver/kernels/number.h"
#include "driver/kernels/thread.h"

namespace kjudge {

// 2^exponent; 0 where that is no normal number.
KJ_DEVICE double power_of_two(std::int64_t exponent) {
  return exponent < -1022 ? 0.0
                          : bit_copy<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

struct BothSides {
  double out, expected;
  bool finite, stray;
};

KJ_DEVICE BothSides load_both(const SumParams& p, std::uint64_t index) {
  const DType dtype = static_cast<DType>(p.dtype);
  BothSides both;
  both.out = load_element(dtype, at<const void>(p.out), index);
  both.expected = rounded_to(
      dtype, load_element(static_cast<DType>(p.expected_dtype), at<const void>(p.expected), index),
      p.saturate != 0);
  both.finite = finite(both.out) && finite(both.expected);
  const bool both_nan = both.out != both.out && both.expected != both.expected;
  both.stray = !both.finite && !both_nan && both.out != both.expected;
  return both;
}

KJ_DEVICE void add_both(const BothSides& both, double scale, RowSums* sums) {
  if (both.stray) ++sums->stray;
  if (!both.finite) return;
  ++sums->finite;
  const double out = both.out * scale, expected = both.expected * scale;
  const double difference = out - expected;
  sums->difference += difference * difference;
  sums->expected += expected * expected;
  sums->out += out * out;
  sums->product += out * expected;
}

KJ_DEVICE void add_sums(const RowSums& more, RowSums* sums) {
  sums->difference += more.difference;
  sums->expected += more.expected;
  sums->out += more.out;
  sums->product += more.product;
  sums->finite += more.finite;
  sums->stray += more.stray;
}

// Of the largest number in a part. Squares of numbers up to 2^25 and down to 2^-100 of it are safe.
KJ_DEVICE std::int64_t scaling_exponent(std::uint64_t largest_bits) {
  const std::int64_t exponent = static_cast<std::int64_t>(largest_bits >> 52) - 1023;
  return exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
}

KJ_DEVICE std::uint64_t largest_bits(const BothSides& both) {
  const std::uint64_t out = bit_copy<std::uint64_t>(magnitude(both.out));
  const std::uint64_t expected = bit_copy<std::uint64_t>(magnitude(both.expected));
  return !both.finite ? 0 : out > expected ? out : expected;
}

// 2^(2 * (of a part - of its row)), which brings the part's sums to the row's exponent.
KJ_DEVICE double part_scale(std::int64_t part, std::int64_t row) {
  return power_of_two(2 * (part - row));
}

KJ_DEVICE RowSums scaled(RowSums sums, double scale) {
  sums.difference *= scale;
  sums.expected *= scale;
  sums.out *= scale;
  sums.product *= scale;
  return sums;
}

#ifdef __CUDACC__

KJ_DEVICE std::uint64_t largest_of_warp(std::uint64_t value) {
  for (int lane = 16; lane > 0; lane /= 2) {
    const std::uint64_t other = __shfl_xor_sync(0xffffffffu, value, lane);
    if (other > value) value = other;
  }
  return value;
}

// In lane 0.
KJ_DEVICE RowSums sum_of_warp(RowSums sums) {
  for (int lane = kSumLanes / 2; lane > 0; lane /= 2) {
    RowSums other;
    other.difference = __shfl_down_sync(0xffffffffu, sums.difference, lane);
    other.expected = __shfl_down_sync(0xffffffffu, sums.expected, lane);
    other.out = __shfl_down_sync(0xffffffffu, sums.out, lane);
    other.product = __shfl_down_sync(0xffffffffu, sums.product, lane);
    other.finite = __shfl_down_sync(0xffffffffu, sums.finite, lane);
    other.stray = __shfl_down_sync(0xffffffffu, sums.stray, lane);
    add_sums(other, &sums);
  }
  return sums;
}

KJ_DEVICE RowSums sum_part(const SumParams& p, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = begin + threadIdx.x % 32;
  RowSums sums{};
  if (static_cast<DType>(p.dtype) == DType::float64) {
    std::uint64_t largest = 0;
    for (std::uint64_t i = first; i < end; i += kSumLanes) {
      const std::uint64_t bits = largest_bits(load_both(p, i));
      if (bits > largest) largest = bits;
    }
    sums.exponent = scaling_exponent(largest_of_warp(largest));
  }
  const double scale = power_of_two(-sums.exponent);
  for (std::uint64_t i = first; i < end; i += kSumLanes) add_both(load_both(p, i), scale, &sums);
  return sum_of_warp(sums);
}

KJ_DEVICE RowSums join_row(const RowSums* parts, std::uint64_t count) {
  const std::uint64_t first = threadIdx.x % 32;
  // Exponents are above -1024: as unsigned numbers they order alike.
  std::uint64_t largest = 0;
  for (std::uint64_t i = first; i < count; i += kSumLanes) {
    const std::uint64_t exponent = static_cast<std::uint64_t>(parts[i].exponent + 1024);
    if (exponent > largest) largest = exponent;
  }
  RowSums sums{};
  sums.exponent = static_cast<std::int64_t>(largest_of_warp(largest)) - 1024;
  for (std::uint64_t i = first; i < count; i += kSumLanes) {
    add_sums(scaled(parts[i], part_scale(parts[i].exponent, sums.exponent)), &sums);
  }
  return sum_of_warp(sums);
}

KJ_DEVICE bool writes_row() { return threadIdx.x % 32 == 0; }

#else

inline RowSums sum_of_lanes(RowSums* lanes) {
  for (int step = kSumLanes / 2; step > 0; step /= 2) {
    for (int lane = 0; lane < step; ++lane) add_sums(lanes[lane + step], &lanes[lane]);
  }
  return lanes[0];
}

// The quick way for float32 out against float64 or float32 expected, when all elements are finite:
// the same additions in the same order, by vector instructions. False when some are not.
template <class Expected>
bool sum_floats(const SumParams& p, std::uint64_t begin, std::uint64_t end, RowSums* lanes) {
  double difference[kSumLanes] = {}, squares[kSumLanes] = {}, outs[kSumLanes] = {},
         products[kSumLanes] = {};
  const float* out = at<const float>(p.out);
  const Expected* expected = at<const Expected>(p.expected);
  const std::uint64_t whole = (end - begin) / kSumLanes * kSumLanes;
  for (std::uint64_t i = begin; i < begin + whole; i += kSumLanes) {
    for (int lane = 0; lane < kSumLanes; ++lane) {
      const double o = out[i + static_cast<unsigned>(lane)];
      const double e =
          static_cast<double>(static_cast<float>(expected[i + static_cast<unsigned>(lane)]));
      const double d = o - e;
      difference[lane] += d * d;
      squares[lane] += e * e;
      outs[lane] += o * o;
      products[lane] += o * e;
    }
  }
  double all = 0;
  for (int lane = 0; lane < kSumLanes; ++lane) all += difference[lane] + squares[lane];
  if (!finite(all)) return false;  // squares of float32 are far from the end of a double's range
  for (int lane = 0; lane < kSumLanes; ++lane) {
    lanes[lane] = {
        difference[lane], squares[lane], outs[lane], products[lane], whole / kSumLanes, 0, 0};
  }
  for (std::uint64_t i = begin + whole; i < end; ++i) {
    add_both(load_both(p, i), 1.0, &lanes[(i - begin) % kSumLanes]);
  }
  return true;
}

inline RowSums sum_part(const SumParams& p, std::uint64_t begin, std::uint64_t end) {
  RowSums lanes[kSumLanes] = {};
  const DType dtype = static_cast<DType>(p.dtype);
  const DType expected_dtype = static_cast<DType>(p.expected_dtype);
  if (dtype == DType::float32 && expected_dtype == DType::float64 &&
      sum_floats<double>(p, begin, end, lanes)) {
    return sum_of_lanes(lanes);
  }
  if (dtype == DType::float32 && expected_dtype == DType::float32 &&
      sum_floats<float>(p, begin, end, lanes)) {
    return sum_of_lanes(lanes);
  }
  std::int64_t exponent = 0;
  if (dtype == DType::float64) {
    std::uint64_t largest = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::uint64_t bits = largest_bits(load_both(p, i));
      if (bits > largest) largest = bits;
    }
    exponent = scaling_exponent(largest);
  }
  const double scale = power_of_two(-exponent);
  for (std::uint64_t i = begin; i < end; ++i) {
    add_both(load_both(p, i), scale, &lanes[(i - begin) % kSumLanes]);
  }
  RowSums sums = sum_of_lanes(lanes);
  sums.exponent = exponent;
  return sums;
}

inline RowSums join_row(const RowSums* parts, std::uint64_t count) {
  std::int64_t exponent = parts[0].exponent;
  for (std::uint64_t i = 1; i < count; ++i) {
    if (parts[i].exponent > exponent) exponent = parts[i].exponent;
  }
  RowSums lanes[kSumLanes] = {};
  for (std::uint64_t i = 0; i < count; ++i) {
    add_sums(scaled(parts[i], part_scale(parts[i].exponent, exponent)), &lanes[i % kSumLanes]);
  }
  RowSums sums = sum_of_lanes(lanes);
  sums.exponent = exponent;
  return sums;
}

inline bool writes_row() { return true; }

#endif

KJ_DEVICE void sum_parts(const SumParams& p, Range range) {
  const std::uint64_t per_row = parts_per_row(p.row_size);
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) {
    const std::uint64_t row_begin = i / per_row * p.row_size;
    const std::uint64_t begin = row_begin + i % per_row * kPartElements;
    const std::uint64_t row_end = row_begin + p.row_size;
    const std::uint64_t end = begin + kPartElements < row_end ? begin + kPartElements : row_end;
    const RowSums sums = sum_part(p, begin, end);
    if (writes_row()) at<RowSums>(p.parts)[i] = sums;
  }
}

KJ_DEVICE void join_parts(const JoinParams& p, Range range) {
  for (std::uint64_t row = range.begin; row < range.end; row += range.step) {
    const RowSums sums =
        join_row(at<const RowSums>(p.parts) + row * p.parts_per_row, p.parts_per_row);
    if (writes_row()) at<RowSums>(p.sums)[row] = sums;
  }
}

// A row of expected that is all 0: out's norm is at most that of smallest normal numbers.
KJ_DEVICE bool is_tiny(const RowSums& sums, double tiny) {
  return root(sums.difference) <=
         root(static_cast<double>(sums.finite)) * tiny * power_of_two(-sums.exponent);
}

KJ_DEVICE double root_mean_square(const RowSums& sums) {
  return root(sums.expected / static_cast<double>(sums.finite)) * power_of_two(sums.exponent);
}

KJ_DEVICE double cosine(const RowSums& sums) {
  if (sums.out == 0) return 0;
  return sums.product / (root(sums.expected) * root(sums.out));
}

KJ_DEVICE void judge_rows(const JudgeRowsParams& p, Range range) {
  RowReport found{0, ~std::uint64_t{0}, 0, 0, 0};
  double worst = 0;
  for (std::uint64_t row = range.begin; row < range.end; row += range.step) {
    const RowSums sums = at<const RowSums>(p.sums)[row];
    double error;
    bool right;
    if (sums.expected == 0) {
      right = is_tiny(sums, p.tiny);
      error = right ? 0.0 : bit_copy<double>(std::uint64_t{0x7ff} << 52);
    } else if (p.kind == row_cosine) {
      const double similarity = cosine(sums);
      right = similarity >= p.limit;
      error = similarity < 1 ? 1 - similarity : 0.0;
    } else {
      error = root(sums.difference) / root(sums.expected);
      right = error <= p.limit;
    }
    if (error > worst) worst = error;
    if (p.errors) at<double>(p.errors)[row] = error;
    found.stray += sums.stray;
    if (sums.expected != 0 || sums.finite < p.row_size) found.any_nonzero = 1;
    if (right && sums.stray == 0) continue;
    ++found.failed;
    if (row < found.first_row) found.first_row = row;
  }
  RowReport* report = at<RowReport>(p.report);
  if (found.failed) {
    add(&report->failed, found.failed);
    keep_smaller(&report->first_row, found.first_row);
    if (found.stray) add(&report->stray, found.stray);
  }
  if (worst > 0) keep_larger(&report->worst_bits, bit_copy<std::uint64_t>(worst));
  if (found.any_nonzero) keep_larger(&report->any_nonzero, 1);
}

// compare_row_bound: a part of a row at a time, so that what the row allows is computed once.
KJ_DEVICE void bound_rows(const CompareParams& p, Range range) {
  Found found;
  const std::uint64_t per_row = parts_per_row(p.row_size);
  for (std::uint64_t i = range.begin; i < range.end; i += range.step) {
    const RowSums sums = at<const RowSums>(p.sums)[i / per_row];
    Allowance allowed;
    if (sums.expected == 0) {
      allowed.anything = is_tiny(sums, p.tiny);
    } else {
      allowed.atol = p.atol * root_mean_square(sums);
    }
    const std::uint64_t row_begin = i / per_row * p.row_size;
    const std::uint64_t begin = row_begin + i % per_row * kPartElements;
    const std::uint64_t row_end = row_begin + p.row_size;
    const std::uint64_t end = begin + kPartElements < row_end ? begin + kPartElements : row_end;
#ifdef __CUDACC__
    for (std::uint64_t k = begin + threadIdx.x % 32; k < end; k += 32) {
      compare_element(p, allowed, k, &found);
    }
#else
    compare_tiles(p, allowed, begin, end, &found);
#endif
  }
  merge(found, at<CompareReport>(p.report));
}

}  // namespace kjudge
