// SPDX-License-Identifier: Apache-2.0
#include "tensor.h"

#include <doctest/doctest.h>

#include "error.h"

using namespace kjudge;

TEST_CASE("dtype names are torch's and parse back") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK(parse_dtype(name(dtype)) == dtype);
  }
  CHECK(parse_dtype("float") == std::nullopt);
}

TEST_CASE("element count of scalars, empty and overflowing tensors") {
  using Dims = std::vector<std::int64_t>;
  CHECK(element_count(Dims{}) == 1);
  CHECK(element_count(Dims{3, 5}) == 15);
  CHECK(element_count(Dims{3, 0, 5}) == 0);
  CHECK_THROWS_AS(element_count(Dims{-1}), Error);
  CHECK_THROWS_AS(element_count(Dims{std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
}

TEST_CASE("packed types round up to whole bytes") {
  CHECK(size_bytes({"x", DType::float4_e2m1, {3}, {}}) == 2);
  CHECK(size_bytes({"x", DType::float64, {3}, {}}) == 24);
}
