// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "check/check.h"

// What tests of checks compare.
namespace kjudge::check_outputs {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// An output y of rows x columns.
inline OutputSpec output_of(DType dtype, DType expected_dtype,
                            std::vector<std::int64_t> dims = {4}) {
  return {{"y", dtype, std::move(dims), {}}, expected_dtype, Overflow::infinity, {}};
}

inline CompareParams params_of(DType dtype, DType expected_dtype, const Check& check,
                               std::uint64_t count) {
  CompareParams params = compare_params(output_of(dtype, expected_dtype), check);
  params.count = count;
  return params;
}

}  // namespace kjudge::check_outputs
