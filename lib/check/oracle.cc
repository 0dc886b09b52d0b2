// SPDX-License-Identifier: Apache-2.0
#include "check/oracle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "driver/kernels/philox.h"
#include "error.h"

namespace kjudge {

// The rules of a comparison, which driver/kernels/ keeps as well and tests hold it to. Two sources
// that share nothing but the generator of the poison: this one computes with frexp, ldexp and rint.
//   1. expected is rounded to the output's type, nearest even, once from double. What overflows
//      becomes infinity, NaN in e4m3, which has none, and the largest value in e2m1, which has
//      neither; or, saturating, the largest value. NaN becomes that type's NaN; in e2m1, the
//      largest value.
//   2. Both are doubles from there on: exact for every type but 64-bit integers above 2^53, whose
//      `exact` compares the integers when both sides have them.
//   3. An infinity matches the same infinity, a NaN any NaN, neither anything else.
//   4. exact: equal values, so -0 = 0 unless signed_zero. A bool is its byte: 2 is neither value.
//   5. close: fabs(out - expected) <= atol + rtol * fabs(expected), each operation rounded, no
//      fused multiply-add.
//   6. Worst errors are over all elements finite on both sides, relative ones where expected is not
//   0.
//   7. codes: the steps between the two in their type, of which -0 and 0 are one value.
//   8. Sums of rows are those of RowSums (driver/kernels.h), over elements finite on both sides.
//   9. A row whose expected elements are all 0 is right where norm(out) <= sqrt(n) * the smallest
//      normal number of the type, n its finite elements; its error is then 0, else infinity.
//  10. A row with a stray NaN or infinity is wrong.
//  11. row_bound: fabs(out - expected) <= c * rms + rtol * fabs(expected), with the rms of the
//      row's finite expected elements.
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A binary floating-point type: values of sign, exponent and mantissa bits.
struct FloatType {
  int mantissa_bits;
  int least_exponent;  // of normal values
  double largest;
  bool has_infinity, has_nan;
};

FloatType float_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return {23, -126, 0x1.fffffep127, true, true};
    case DType::float16:
      return {10, -14, 65504, true, true};
    case DType::bfloat16:
      return {7, -126, 0x1.fep127, true, true};
    case DType::float8_e5m2:
      return {2, -14, 57344, true, true};
    case DType::float8_e4m3:
      return {3, -6, 448, false, true};
    case DType::float4_e2m1:
      return {1, 0, 6, false, false};
    default:
      return {52, -1022, std::numeric_limits<double>::max(), true, true};
  }
}

double round_to_float(const FloatType& type, double value, Overflow overflow) {
  const double largest = std::copysign(type.largest, value);
  if (std::isnan(value)) return type.has_nan ? value : largest;
  if (value == 0) return value;
  double rounded = value;
  if (std::isfinite(value)) {
    int exponent = 0;
    std::frexp(value, &exponent);  // |value| is in [2^(exponent - 1), 2^exponent)
    const int unit = std::max(exponent - 1, type.least_exponent) - type.mantissa_bits;
    // rint keeps the sign of zero; the rounding mode is nearest even.
    rounded = std::ldexp(std::rint(std::ldexp(value, -unit)), unit);
  }
  if (std::fabs(rounded) <= type.largest) return rounded;
  if (overflow == Overflow::saturate || !type.has_nan) return largest;
  return type.has_infinity ? std::copysign(kInfinity, value) : kNaN;
}

double round_to_integer(DType dtype, double value) {
  const bool is_signed = dtype != DType::uint8;
  const int value_bits = bits(dtype) - (is_signed ? 1 : 0);
  const double low = is_signed ? -std::ldexp(1, value_bits) : 0;
  const double high = std::ldexp(1, value_bits) - 1;  // 2^63 for int64, as a double must
  if (std::isnan(value)) return low;
  return std::fmin(std::fmax(std::rint(value), low), high) + 0.0;  // integers have no -0
}

// A small float from its code: bit patterns, not arithmetic on them, decide what is special.
double decode(const FloatType& type, int total_bits, std::uint32_t code) {
  const int m = type.mantissa_bits;
  const bool negative = (code >> (total_bits - 1) & 1) != 0;
  const std::uint32_t mantissa = code & ((1u << m) - 1);
  const std::uint32_t exponent = (code >> m) & ((1u << (total_bits - 1 - m)) - 1);
  const std::uint32_t all_ones = (1u << (total_bits - 1 - m)) - 1;
  double magnitude = 0;
  if (exponent == all_ones && type.has_infinity) {
    magnitude = mantissa == 0 ? kInfinity : kNaN;
  } else if (exponent == all_ones && type.has_nan && mantissa == (1u << m) - 1) {
    magnitude = kNaN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, type.least_exponent - m);
  } else {
    magnitude =
        std::ldexp(mantissa + (1u << m), type.least_exponent - m + static_cast<int>(exponent) - 1);
  }
  return std::copysign(magnitude, negative ? -1 : 1);
}

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t index) {
  KJ_CHECK(index < bytes.size() / sizeof(T));
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

bool holds_poison(const CompareParams& params, std::span<const std::byte> out,
                  std::uint64_t index) {
  const int element_bits = bits(static_cast<DType>(params.dtype));
  const std::uint64_t first_bit = index * static_cast<unsigned>(element_bits);
  for (std::uint64_t bit = first_bit; bit < first_bit + static_cast<unsigned>(element_bits);
       ++bit) {
    const auto stored = std::to_integer<unsigned>(out[bit / 8]);
    if (((stored ^ poison_byte(params.poison_key, bit / 8)) >> (bit % 8) & 1) != 0) return false;
  }
  return true;
}

// Rule 9.
bool is_tiny(double tiny, const RowSums& sums) {
  const double norm = std::sqrt(static_cast<double>(sums.finite)) * tiny;
  return std::sqrt(sums.difference) <= std::ldexp(norm, -static_cast<int>(sums.exponent));
}

// Steps from 0 to a value of a float type, with its sign: what remains of the logarithm once each
// binade has as many steps as any other.
std::int64_t steps_from_zero(const FloatType& type, double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const int binade = value == 0 ? type.least_exponent : std::max(exponent - 1, type.least_exponent);
  const auto in_binade =
      static_cast<std::int64_t>(std::ldexp(std::fabs(value), type.mantissa_bits - binade));
  const std::int64_t steps =
      (std::int64_t{binade - type.least_exponent} << type.mantissa_bits) + in_binade;
  return value < 0 ? -steps : steps;
}

std::int64_t integer_of(double value) {
  return value >= 0x1p63 ? std::numeric_limits<std::int64_t>::max()
                         : static_cast<std::int64_t>(value);
}

std::uint64_t steps_between(const CompareParams& params, std::span<const std::byte> out_bytes,
                            std::span<const std::byte> expected_bytes, std::uint64_t index,
                            double out, double expected) {
  const auto dtype = static_cast<DType>(params.dtype);
  std::int64_t a = 0, b = 0;
  if (is_floating(dtype)) {
    a = steps_from_zero(float_type(dtype), out);
    b = steps_from_zero(float_type(dtype), expected);
  } else {
    const bool wide = dtype == DType::int64;
    const bool both_wide = wide && static_cast<DType>(params.expected_dtype) == DType::int64;
    a = wide ? load<std::int64_t>(out_bytes, index) : integer_of(out);
    b = both_wide ? load<std::int64_t>(expected_bytes, index) : integer_of(expected);
  }
  const auto low = static_cast<std::uint64_t>(std::min(a, b));
  return static_cast<std::uint64_t>(std::max(a, b)) - low;
}

// |out - expected| that a row's elements may have beside their own share; nullopt: anything.
std::optional<double> row_bound(const CompareParams& params, const RowSums& sums) {
  if (sums.expected != 0) {
    const double mean = sums.expected / static_cast<double>(sums.finite);
    return params.atol * std::ldexp(std::sqrt(mean), static_cast<int>(sums.exponent));
  }
  if (is_tiny(params.tiny, sums)) return std::nullopt;
  return 0;
}

bool matches(const CompareParams& params, std::span<const std::byte> out_bytes,
             std::span<const std::byte> expected_bytes, std::uint64_t index, double out,
             double expected, std::span<const RowSums> rows) {
  if (!std::isfinite(out) || !std::isfinite(expected)) {
    return out == expected || (std::isnan(out) && std::isnan(expected));
  }
  if (params.kind == compare_close) {
    return std::fabs(out - expected) <= params.atol + params.rtol * std::fabs(expected);
  }
  if (params.kind == compare_row_bound) {
    const auto bound = row_bound(params, rows[index / params.row_size]);
    return !bound || std::fabs(out - expected) <= *bound + params.rtol * std::fabs(expected);
  }
  constexpr auto kInt64 = static_cast<std::uint32_t>(DType::int64);
  if (params.dtype == kInt64 && params.expected_dtype == kInt64) {
    return load<std::int64_t>(out_bytes, index) == load<std::int64_t>(expected_bytes, index);
  }
  return out == expected &&
         (params.signed_zero == 0 || std::signbit(out) == std::signbit(expected));
}

// The order of additions of RowSums: `term(i)` for i below count, in 32 lanes, then a tree.
template <class Term>
RowSums sum_in_lanes(std::uint64_t count, const Term& term) {
  std::array<RowSums, kSumLanes> lanes{};
  const auto add = [](RowSums& to, const RowSums& more) {
    to.difference += more.difference;
    to.expected += more.expected;
    to.out += more.out;
    to.product += more.product;
    to.finite += more.finite;
    to.stray += more.stray;
  };
  for (std::uint64_t i = 0; i < count; ++i) add(lanes[i % kSumLanes], term(i));
  for (std::size_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) add(lanes[lane], lanes[lane + width]);
  }
  return lanes[0];
}

RowSums sum_part(const SumParams& params, std::span<const std::byte> out,
                 std::span<const std::byte> expected, std::uint64_t first, std::uint64_t count) {
  const auto dtype = static_cast<DType>(params.dtype);
  const Overflow overflow = params.saturate != 0 ? Overflow::saturate : Overflow::infinity;
  std::vector<double> got, wanted;
  double largest = 0;
  for (std::uint64_t i = first; i < first + count; ++i) {
    got.push_back(element_value(dtype, out, i));
    wanted.push_back(round_to(
        dtype, element_value(static_cast<DType>(params.expected_dtype), expected, i), overflow));
    if (std::isfinite(got.back()) && std::isfinite(wanted.back())) {
      largest = std::fmax(largest, std::fmax(std::fabs(got.back()), std::fabs(wanted.back())));
    }
  }
  int exponent = 0;
  if (dtype == DType::float64) {
    std::frexp(largest, &exponent);
    exponent = largest == 0 ? -1000 : std::clamp(exponent - 1, -1000, 1000);
  }
  RowSums sums = sum_in_lanes(count, [&](std::uint64_t i) {
    RowSums term{};
    if (!std::isfinite(got[i]) || !std::isfinite(wanted[i])) {
      const bool same = got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]));
      term.stray = same ? 0 : 1;
      return term;
    }
    const double o = std::ldexp(got[i], -exponent), e = std::ldexp(wanted[i], -exponent);
    term = {(o - e) * (o - e), e * e, o * o, o * e, 1, 0, 0};
    return term;
  });
  sums.exponent = exponent;
  return sums;
}

RowSums join(const std::vector<RowSums>& parts) {
  std::int64_t exponent = parts[0].exponent;
  for (const RowSums& part : parts) exponent = std::max(exponent, part.exponent);
  RowSums sums = sum_in_lanes(parts.size(), [&](std::uint64_t i) {
    RowSums term = parts[i];
    const auto shift = static_cast<int>(2 * (term.exponent - exponent));
    const double scale = shift < -1022 ? 0 : std::ldexp(1, shift);
    for (double* sum : {&term.difference, &term.expected, &term.out, &term.product}) *sum *= scale;
    return term;
  });
  sums.exponent = exponent;
  return sums;
}

struct RowJudged {
  double error = 0;
  bool right = false;
};

RowJudged judge_row(const JudgeRowsParams& params, const RowSums& sums) {
  if (sums.expected == 0) {
    const bool right = is_tiny(params.tiny, sums);
    return {right ? 0 : kInfinity, right};
  }
  if (params.kind == row_rel_l2) {
    const double error = std::sqrt(sums.difference) / std::sqrt(sums.expected);
    return {error, error <= params.limit};
  }
  const double cosine =
      sums.out == 0 ? 0 : sums.product / (std::sqrt(sums.expected) * std::sqrt(sums.out));
  return {std::fmax(1 - cosine, 0), cosine >= params.limit};
}

}  // namespace

double element_value(DType dtype, std::span<const std::byte> bytes, std::uint64_t index) {
  switch (dtype) {
    case DType::float64:
      return load<double>(bytes, index);
    case DType::float32:
      return static_cast<double>(load<float>(bytes, index));
    case DType::float16:
    case DType::bfloat16:
      return decode(float_type(dtype), 16, load<std::uint16_t>(bytes, index));
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return decode(float_type(dtype), 8, load<std::uint8_t>(bytes, index));
    case DType::float4_e2m1: {
      const unsigned pair = load<std::uint8_t>(bytes, index / 2);
      return decode(float_type(dtype), 4, pair >> (index % 2 * 4) & 15);  // low half first
    }
    case DType::int64:
      return static_cast<double>(load<std::int64_t>(bytes, index));
    case DType::int32:
      return load<std::int32_t>(bytes, index);
    case DType::int16:
      return load<std::int16_t>(bytes, index);
    case DType::int8:
      return load<std::int8_t>(bytes, index);
    case DType::uint8:
    case DType::boolean:
      return load<std::uint8_t>(bytes, index);
  }
  throw Error(Fault::bug, "no such dtype");
}

double round_to(DType dtype, double value, Overflow overflow) {
  if (dtype == DType::boolean) return value != 0;
  if (!is_floating(dtype)) return round_to_integer(dtype, value);
  return round_to_float(float_type(dtype), value, overflow);
}

CompareReport compare_on_host(const CompareParams& params, std::span<const std::byte> out,
                              std::span<const std::byte> expected, std::span<const RowSums> rows) {
  const auto dtype = static_cast<DType>(params.dtype);
  const auto expected_dtype = static_cast<DType>(params.expected_dtype);
  const Overflow overflow = params.saturate != 0 ? Overflow::saturate : Overflow::infinity;
  CompareReport report{};
  report.first_index = report.first_beyond = std::numeric_limits<std::uint64_t>::max();
  double worst_abs = 0, worst_rel = 0;
  for (std::uint64_t i = params.first; i < params.first + params.count; ++i) {
    const double got = element_value(dtype, out, i);
    const double wanted = round_to(dtype, element_value(expected_dtype, expected, i), overflow);
    const bool finite = std::isfinite(got) && std::isfinite(wanted);
    if (wanted != 0) report.any_nonzero = 1;
    if (finite) {
      const double error = std::fabs(got - wanted);
      worst_abs = std::fmax(worst_abs, error);
      if (wanted != 0) worst_rel = std::fmax(worst_rel, error / std::fabs(wanted));
    }
    std::uint64_t steps = 0;
    if (finite && params.kind == compare_codes) {
      steps = steps_between(params, out, expected, i, got, wanted);
      report.worst_steps = std::max(report.worst_steps, steps);
    }
    const bool match = finite && params.kind == compare_codes
                           ? steps == 0
                           : matches(params, out, expected, i, got, wanted, rows);
    if (match) continue;
    if (params.kind == compare_codes && (!finite || steps > params.within)) {
      ++report.beyond;
      report.first_beyond = std::min(report.first_beyond, i);
    }
    ++report.mismatched;
    report.first_index = std::min(report.first_index, i);
    if (!finite) ++report.nonfinite;
    if (holds_poison(params, out, i)) ++report.still_poisoned;
  }
  report.worst_abs_bits = std::bit_cast<std::uint64_t>(worst_abs);
  report.worst_rel_bits = std::bit_cast<std::uint64_t>(worst_rel);
  return report;
}

RowSums sum_row_on_host(const SumParams& params, std::span<const std::byte> out,
                        std::span<const std::byte> expected, std::uint64_t row) {
  std::vector<RowSums> parts;
  for (std::uint64_t begin = 0; begin < params.row_size; begin += kPartElements) {
    const std::uint64_t size = std::min(kPartElements, params.row_size - begin);
    parts.push_back(sum_part(params, out, expected, row * params.row_size + begin, size));
  }
  return parts.size() == 1 ? parts[0] : join(parts);
}

RowReport judge_rows_on_host(const JudgeRowsParams& params, std::span<const RowSums> rows,
                             std::vector<double>* errors) {
  RowReport report{};
  report.first_row = std::numeric_limits<std::uint64_t>::max();
  double worst = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const RowSums& sums = rows[row];
    const RowJudged judged = judge_row(params, sums);
    worst = std::fmax(worst, judged.error);
    if (errors != nullptr) errors->push_back(judged.error);
    report.stray += sums.stray;
    if (sums.expected != 0 || sums.finite < params.row_size) report.any_nonzero = 1;
    if (judged.right && sums.stray == 0) continue;
    ++report.failed;
    report.first_row = std::min<std::uint64_t>(report.first_row, row);
  }
  report.worst_bits = std::bit_cast<std::uint64_t>(worst);
  return report;
}

}  // namespace kjudge
