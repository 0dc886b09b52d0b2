// SPDX-License-Identifier: Apache-2.0
#include "tensor.h"

#include <array>
#include <limits>

#include "error.h"

namespace kjudge {
namespace {

struct DTypeRow {
  std::string_view name;
  int bits;
  bool floating;
};

constexpr std::array<DTypeRow, kDTypeCount> kDTypes = {{
    {"float64", 64, true},
    {"float32", 32, true},
    {"float16", 16, true},
    {"bfloat16", 16, true},
    {"float8_e4m3", 8, true},
    {"float8_e5m2", 8, true},
    {"float4_e2m1", 4, true},
    {"int64", 64, false},
    {"int32", 32, false},
    {"int16", 16, false},
    {"int8", 8, false},
    {"uint8", 8, false},
    {"bool", 8, false},
}};

const DTypeRow& row(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  KJ_CHECK(index < kDTypes.size());
  return kDTypes[index];
}

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }
int bits(DType dtype) { return row(dtype).bits; }
bool is_floating(DType dtype) { return row(dtype).floating; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t element_count(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t dim : dims) {
    if (dim < 0) throw Error(Fault::malformed, cat("negative dimension ", dim));
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      throw Error(Fault::malformed, "tensor has more than 2^63 elements");
    }
  }
  return empty ? 0 : count;
}

std::int64_t size_bytes(const TensorSpec& tensor) {
  std::int64_t total_bits = 0;
  if (__builtin_mul_overflow(element_count(tensor.dims), std::int64_t{bits(tensor.dtype)},
                             &total_bits) ||
      total_bits > std::numeric_limits<std::int64_t>::max() - 7) {
    throw Error(Fault::malformed, cat("tensor ", tensor.name, " is larger than 2^60 bytes"));
  }
  return (total_bits + 7) / 8;
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= dims[i] > 0 ? dims[i] : 1;
  }
  return strides;
}

}  // namespace kjudge
