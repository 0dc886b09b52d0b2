// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kjudge {

// Element types, with torch's names in text ("float32", "bfloat16"). The numbers are part of the
// bundle format: append only.
enum class DType : std::uint8_t {
  float64 = 0,
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  float8_e4m3 = 4,
  float8_e5m2 = 5,
  float4_e2m1 = 6,  // packed, two to a byte
  int64 = 7,
  int32 = 8,
  int16 = 9,
  int8 = 10,
  uint8 = 11,
  boolean = 12,
};

inline constexpr int kDTypeCount = 13;

std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);
int bits(DType dtype);
bool is_floating(DType dtype);

// What an address in device memory holds.
struct TensorSpec {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;  // in elements; empty means contiguous, last dimension fastest
};

// Elements of `dims`; 1 for a scalar, 0 if any dimension is 0. Fault::malformed when it does not
// fit 63 bits or a dimension is negative.
std::int64_t element_count(std::span<const std::int64_t> dims);

// Bytes that elements of a contiguous tensor occupy, packed types rounded up to a whole byte.
std::int64_t size_bytes(const TensorSpec& tensor);

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> dims);

}  // namespace kjudge
