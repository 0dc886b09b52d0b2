// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

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

bool matches(const CompareParams& params, std::span<const std::byte> out_bytes,
             std::span<const std::byte> expected_bytes, std::uint64_t index, double out,
             double expected) {
  if (!std::isfinite(out) || !std::isfinite(expected)) {
    return out == expected || (std::isnan(out) && std::isnan(expected));
  }
  if (params.kind == compare_close) {
    return std::fabs(out - expected) <= params.atol + params.rtol * std::fabs(expected);
  }
  constexpr auto kInt64 = static_cast<std::uint32_t>(DType::int64);
  if (params.dtype == kInt64 && params.expected_dtype == kInt64) {
    return load<std::int64_t>(out_bytes, index) == load<std::int64_t>(expected_bytes, index);
  }
  return out == expected &&
         (params.signed_zero == 0 || std::signbit(out) == std::signbit(expected));
}

// A value as a contestant would write it: 9 digits tell any two float32 apart.
std::string number(double value, int digits = 9) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
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

CompareParams compare_params(const OutputSpec& output, const Check& check) {
  CompareParams params{};
  params.kind = check.kind == CheckKind::exact ? compare_exact : compare_close;
  params.rtol = check.rtol;
  params.atol = check.atol;
  params.signed_zero = check.signed_zero;
  params.dtype = static_cast<std::uint32_t>(output.tensor.dtype);
  params.expected_dtype = static_cast<std::uint32_t>(output.expected_dtype);
  params.saturate = output.overflow == Overflow::saturate;
  return params;
}

CompareReport compare_on_host(const CompareParams& params, std::span<const std::byte> out,
                              std::span<const std::byte> expected) {
  const auto dtype = static_cast<DType>(params.dtype);
  const auto expected_dtype = static_cast<DType>(params.expected_dtype);
  const Overflow overflow = params.saturate != 0 ? Overflow::saturate : Overflow::infinity;
  CompareReport report{};
  report.first_index = std::numeric_limits<std::uint64_t>::max();
  double worst_abs = 0, worst_rel = 0;
  for (std::uint64_t i = 0; i < params.count; ++i) {
    const double got = element_value(dtype, out, i);
    const double wanted = round_to(dtype, element_value(expected_dtype, expected, i), overflow);
    const bool finite = std::isfinite(got) && std::isfinite(wanted);
    if (finite) {
      const double error = std::fabs(got - wanted);
      worst_abs = std::fmax(worst_abs, error);
      if (wanted != 0) worst_rel = std::fmax(worst_rel, error / std::fabs(wanted));
    }
    if (matches(params, out, expected, i, got, wanted)) continue;
    ++report.mismatched;
    report.first_index = std::min(report.first_index, i);
    if (!finite) ++report.nonfinite;
    if (holds_poison(params, out, i)) ++report.still_poisoned;
  }
  report.worst_abs_bits = std::bit_cast<std::uint64_t>(worst_abs);
  report.worst_rel_bits = std::bit_cast<std::uint64_t>(worst_rel);
  return report;
}

std::optional<CheckFailure> judge(const OutputSpec& output, const Check& check,
                                  const CompareReport& report, std::uint64_t elements) {
  KJ_CHECK(report.mismatched <= elements);
  KJ_CHECK(report.nonfinite <= report.mismatched && report.still_poisoned <= report.mismatched);
  // No fraction covers a NaN or an infinity that is not where expected has one.
  const double allowed = std::floor(check.max_mismatched * static_cast<double>(elements));
  if (report.nonfinite == 0 && static_cast<double>(report.mismatched) <= allowed) {
    return std::nullopt;
  }
  KJ_CHECK(report.first_index < elements);
  CheckFailure failure;
  failure.output = output.tensor.name;
  failure.check = check.kind == CheckKind::exact ? "exact" : "close";
  failure.elements = elements;
  failure.mismatched = report.mismatched;
  failure.first_index = report.first_index;
  failure.nonfinite = report.nonfinite;
  failure.unwritten = report.still_poisoned;
  failure.worst_abs = std::bit_cast<double>(report.worst_abs_bits);
  failure.worst_rel = std::bit_cast<double>(report.worst_rel_bits);
  std::uint64_t rest = report.first_index;
  failure.first_position.resize(output.tensor.dims.size());
  for (std::size_t i = output.tensor.dims.size(); i-- > 0;) {
    const auto dim = static_cast<std::uint64_t>(output.tensor.dims[i]);
    failure.first_position[i] = static_cast<std::int64_t>(rest % dim);
    rest /= dim;
  }
  return failure;
}

std::string describe(const CheckFailure& failure, const Check& check) {
  if (failure.check == kInputsChanged) {
    return cat("input ", failure.output,
               ": changed during the replay; inputs are read-only, write to the outputs only");
  }
  std::string position;
  for (std::int64_t index : failure.first_position) {
    position += cat(position.empty() ? "" : ", ", index);
  }
  std::string got = number(failure.out), wanted = number(failure.expected);
  if (got == wanted && failure.out != failure.expected) {
    got = number(failure.out, 17);
    wanted = number(failure.expected, 17);
  }
  std::string text = cat("output ", failure.output, ": ", failure.mismatched, " of ",
                         failure.elements, failure.elements == 1 ? " element" : " elements",
                         failure.mismatched == 1 ? " differs" : " differ", "; first at [", position,
                         "]: got ", got, ", expected ", wanted);
  if (failure.check == "close") {
    text += cat(" (allowed ", number(check.atol), " + ", number(check.rtol), "*|expected|");
    if (check.max_mismatched > 0) {
      text += cat(" for all but ", number(100 * check.max_mismatched), " % of the elements");
    }
    text += cat("); worst error ", number(failure.worst_abs, 3));
    if (failure.worst_rel > 0) text += cat(", relative ", number(failure.worst_rel, 3));
  }
  if (failure.nonfinite > 0) {
    text += cat("; ", failure.nonfinite, failure.nonfinite == 1 ? " is" : " are",
                " NaN or infinite on one side only");
  }
  if (failure.unwritten > 0) {
    text +=
        cat("; ", failure.unwritten, " still ", failure.unwritten == 1 ? "holds" : "hold",
            " the poison that was there before the launch: unwritten output. Every element must "
            "be written, on every launch");
  }
  return text;
}

}  // namespace kjudge
