// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element types in kjudge's kernels: exact decoding to double, and rounding from double with
// nearest even in one step. Bit for bit the same on every device.

#include <cstdint>
#include <cstring>

#include "driver/kernels/philox.h"
#include "tensor.h"

namespace kjudge {

template <class To, class From>
KJ_EVERYWHERE To bit_copy(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// A binary floating-point format below float32. `finite_only` as e4m3 (OCP "fn"): no infinity, NaN
// is all ones, and the top exponent holds values.
struct SmallFloat {
  int exponent_bits, mantissa_bits;
  bool has_infinity, has_nan;
};

KJ_EVERYWHERE SmallFloat small_float(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {5, 10, true, true};
    case DType::bfloat16:
      return {8, 7, true, true};
    case DType::float8_e5m2:
      return {5, 2, true, true};
    case DType::float8_e4m3:
      return {4, 3, false, true};
    default:
      return {2, 1, false, false};  // float4_e2m1
  }
}

KJ_EVERYWHERE double decode_small(SmallFloat format, std::uint32_t code) {
  const int m = format.mantissa_bits, e = format.exponent_bits;
  const std::uint32_t mantissa = code & ((1u << m) - 1);
  const std::uint32_t exponent = (code >> m) & ((1u << e) - 1);
  const std::uint64_t sign = static_cast<std::uint64_t>(code >> (m + e) & 1) << 63;
  const std::uint32_t top = (1u << e) - 1;
  const int bias = (1 << (e - 1)) - 1;
  if (exponent == top && format.has_infinity) {
    return bit_copy<double>(sign | 0x7ff0000000000000u |
                            (static_cast<std::uint64_t>(mantissa) << (52 - m)));
  }
  if (exponent == top && format.has_nan && mantissa == (1u << m) - 1) {
    return bit_copy<double>(sign | 0x7ff8000000000000u);
  }
  if (exponent == 0) {
    // mantissa * 2^(1 - bias - m), exact in double for every format here
    const double unit = bit_copy<double>(static_cast<std::uint64_t>(1023 + 1 - bias - m) << 52);
    const double magnitude = mantissa * unit;
    return sign ? -magnitude : magnitude;
  }
  return bit_copy<double>(
      sign | (static_cast<std::uint64_t>(static_cast<int>(exponent) - bias + 1023) << 52) |
      (static_cast<std::uint64_t>(mantissa) << (52 - m)));
}

KJ_EVERYWHERE std::uint32_t encode_small(SmallFloat format, double value, bool saturate) {
  const int m = format.mantissa_bits, e = format.exponent_bits;
  const int bias = (1 << (e - 1)) - 1;
  const std::uint32_t top = (1u << e) - 1;
  const std::uint64_t bits = bit_copy<std::uint64_t>(value);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << (m + e);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffu;
  const std::uint32_t infinity = top << m;  // of a format that has it
  const std::uint32_t nan =
      format.has_infinity ? infinity | (1u << (m - 1)) : infinity | ((1u << m) - 1);
  const std::uint32_t largest = format.has_infinity ? infinity - 1
                                : format.has_nan    ? infinity | ((1u << m) - 2)
                                                    : infinity | ((1u << m) - 1);
  const std::uint32_t overflow = saturate || !format.has_nan ? largest
                                 : format.has_infinity       ? infinity
                                                             : nan;
  if (magnitude > 0x7ff0000000000000u) return sign | (format.has_nan ? nan : largest);
  if (magnitude == 0x7ff0000000000000u) return sign | overflow;

  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  int shift = 52 - m;  // of the 53-bit significand
  int biased = exponent + bias;
  if (biased < 1) {
    shift += 1 - biased;
    biased = 0;
  }
  if (magnitude >> 52 == 0 || shift > 54) return sign;  // far below half of the smallest
  const std::uint64_t significand = (magnitude & 0xfffffffffffffu) | 0x10000000000000u;
  std::uint64_t rounded = significand >> shift;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (rounded & 1))) ++rounded;
  // A carry out of the mantissa moves into the exponent by itself.
  const std::uint64_t code =
      biased == 0 ? rounded : (static_cast<std::uint64_t>(biased - 1) << m) + rounded;
  return sign | (code > largest ? overflow : static_cast<std::uint32_t>(code));
}

// Element `index` of a tensor at `base`, as a double; exact but for 64-bit integers above 2^53.
KJ_EVERYWHERE double load_element(DType dtype, const void* base, std::uint64_t index) {
  switch (dtype) {
    case DType::float64:
      return static_cast<const double*>(base)[index];
    case DType::float32:
      return static_cast<double>(static_cast<const float*>(base)[index]);
    case DType::float16:
    case DType::bfloat16:
      return decode_small(small_float(dtype), static_cast<const std::uint16_t*>(base)[index]);
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return decode_small(small_float(dtype), static_cast<const std::uint8_t*>(base)[index]);
    case DType::float4_e2m1:
      return decode_small(
          small_float(dtype),
          static_cast<const std::uint8_t*>(base)[index / 2] >> (index % 2 * 4) & 15u);
    case DType::int64:
      return static_cast<double>(static_cast<const std::int64_t*>(base)[index]);
    case DType::int32:
      return static_cast<const std::int32_t*>(base)[index];
    case DType::int16:
      return static_cast<const std::int16_t*>(base)[index];
    case DType::int8:
      return static_cast<const std::int8_t*>(base)[index];
    case DType::uint8:
      return static_cast<const std::uint8_t*>(base)[index];
    case DType::boolean:
      // As it is: a byte that is neither 0 nor 1 was not written as a bool.
      return static_cast<const std::uint8_t*>(base)[index];
  }
  return 0;
}

KJ_EVERYWHERE std::int64_t to_integer(double value, double low, double high) {
  if (!(value > low)) return static_cast<std::int64_t>(low);  // NaN too
  if (!(value < high)) {
    return high >= 9223372036854775808.0 ? 0x7fffffffffffffff : static_cast<std::int64_t>(high);
  }
  // Nearest even by hand: the same on every device, whatever the rounding mode.
  const double floor = static_cast<double>(static_cast<std::int64_t>(value)) -
                       (value < static_cast<double>(static_cast<std::int64_t>(value)) ? 1.0 : 0.0);
  const double rest = value - floor;
  std::int64_t result = static_cast<std::int64_t>(floor);
  if (rest > 0.5 || (rest == 0.5 && (result & 1))) ++result;
#ifndef __CUDACC__
  // GCC 12 with -fno-trapping-math takes a double made an integer and a double again for trunc(),
  // which keeps the sign of a zero.
  asm("" : "+r"(result));
#endif
  return result;
}

KJ_EVERYWHERE double saturated(double value, double largest) {
  return value > largest ? largest : value < -largest ? -largest : value;  // NaN stays
}

// Stores `value` rounded to dtype; with `saturate` an infinity becomes the largest finite value
// too. Two elements share a byte in float4_e2m1: the caller writes both from one thread.
KJ_EVERYWHERE void store_element(DType dtype, void* base, std::uint64_t index, double value,
                                 bool saturate) {
  switch (dtype) {
    case DType::float64:
      static_cast<double*>(base)[index] =
          saturate ? saturated(value, 1.7976931348623157e308) : value;
      return;
    case DType::float32: {
      const float rounded = static_cast<float>(value);
      static_cast<float*>(base)[index] =
          saturate
              ? static_cast<float>(saturated(static_cast<double>(rounded), 3.4028234663852886e38))
              : rounded;
      return;
    }
    case DType::float16:
    case DType::bfloat16:
      static_cast<std::uint16_t*>(base)[index] =
          static_cast<std::uint16_t>(encode_small(small_float(dtype), value, saturate));
      return;
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      static_cast<std::uint8_t*>(base)[index] =
          static_cast<std::uint8_t>(encode_small(small_float(dtype), value, saturate));
      return;
    case DType::float4_e2m1: {
      std::uint8_t& byte = static_cast<std::uint8_t*>(base)[index / 2];
      const unsigned shift = index % 2 * 4;
      byte = static_cast<std::uint8_t>(
          (byte & ~(15u << shift)) | (encode_small(small_float(dtype), value, saturate) << shift));
      return;
    }
    case DType::int64:
      static_cast<std::int64_t*>(base)[index] =
          to_integer(value, -9223372036854775808.0, 9223372036854775808.0);
      return;
    case DType::int32:
      static_cast<std::int32_t*>(base)[index] =
          static_cast<std::int32_t>(to_integer(value, -2147483648.0, 2147483647.0));
      return;
    case DType::int16:
      static_cast<std::int16_t*>(base)[index] =
          static_cast<std::int16_t>(to_integer(value, -32768.0, 32767.0));
      return;
    case DType::int8:
      static_cast<std::int8_t*>(base)[index] =
          static_cast<std::int8_t>(to_integer(value, -128.0, 127.0));
      return;
    case DType::uint8:
      static_cast<std::uint8_t*>(base)[index] =
          static_cast<std::uint8_t>(to_integer(value, 0.0, 255.0));
      return;
    case DType::boolean:
      static_cast<std::uint8_t*>(base)[index] = value != 0;
      return;
  }
}

// `value` rounded to dtype and back: what a perfect kernel would have stored.
KJ_EVERYWHERE double rounded_to(DType dtype, double value, bool saturate) {
  std::uint64_t room = 0;
  store_element(dtype, &room, 0, value, saturate);
  return load_element(dtype, &room, 0);
}

}  // namespace kjudge
