// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

#include "check/oracle.h"
#include "check_outputs.h"
#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "error.h"

using namespace kjudge;
using namespace kjudge::check_outputs;

namespace {

constexpr DType kSmall[] = {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2,
                            DType::float4_e2m1};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

double decode_code(DType dtype, std::uint32_t code) {
  const auto bytes = bytes_of(std::vector<std::uint32_t>{code});
  return element_value(dtype, bytes, 0);
}

CompareReport compare_doubles(const Check& check, const std::vector<double>& out,
                              const std::vector<double>& expected) {
  return compare_on_host(params_of(DType::float64, DType::float64, check, out.size()),
                         bytes_of(out), bytes_of(expected));
}

const Check kExact{CheckKind::exact};
const Check kClose{CheckKind::close, 1e-3, 1e-6};

}  // namespace

TEST_CASE("known codes of the small types") {
  CHECK(decode_code(DType::float16, 0x3c00) == 1);
  CHECK(decode_code(DType::float16, 0x7bff) == 65504);
  CHECK(decode_code(DType::float16, 0x0001) == 0x1p-24);
  CHECK(decode_code(DType::float16, 0xfc00) == -kInf);
  CHECK(std::isnan(decode_code(DType::float16, 0x7c01)));
  CHECK(decode_code(DType::bfloat16, 0x3f80) == 1);
  CHECK(decode_code(DType::bfloat16, 0x0001) == 0x1p-133);
  CHECK(decode_code(DType::bfloat16, 0x7f80) == kInf);
  CHECK(decode_code(DType::float8_e4m3, 0x38) == 1);
  CHECK(decode_code(DType::float8_e4m3, 0x7e) == 448);
  CHECK(decode_code(DType::float8_e4m3, 0x01) == 0x1p-9);
  CHECK(std::isnan(decode_code(DType::float8_e4m3, 0x7f)));
  CHECK(std::isnan(decode_code(DType::float8_e4m3, 0xff)));
  CHECK(decode_code(DType::float8_e5m2, 0x3c) == 1);
  CHECK(decode_code(DType::float8_e5m2, 0x7b) == 57344);
  CHECK(decode_code(DType::float8_e5m2, 0x7c) == kInf);
  CHECK(std::isnan(decode_code(DType::float8_e5m2, 0x7d)));
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    CHECK(same(decode_code(DType::float4_e2m1, code), values[code]));
    CHECK(same(decode_code(DType::float4_e2m1, code | 8), -values[code]));
  }
  // Two to a byte, low half first.
  CHECK(element_value(DType::float4_e2m1, bytes_of<std::uint8_t>({0x72}), 0) == 1);
  CHECK(element_value(DType::float4_e2m1, bytes_of<std::uint8_t>({0x72}), 1) == 6);
}

TEST_CASE("every code of the small types decodes as the kernels decode it, and rounds to itself") {
  for (DType dtype : kSmall) {
    CAPTURE(name(dtype));
    for (std::uint32_t code = 0; code < (1u << bits(dtype)); ++code) {
      const double value = decode_code(dtype, code);
      const std::uint64_t stored = code;
      const double kernel = load_element(dtype, &stored, 0);
      if (!same(value, kernel)) FAIL_CHECK("code " << code << ": " << value << ", " << kernel);
      if (!same(round_to(dtype, value, Overflow::infinity), value)) FAIL_CHECK("code " << code);
    }
  }
}

TEST_CASE("integers decode") {
  CHECK(element_value(DType::int64, bytes_of<std::int64_t>({-5}), 0) == -5);
  CHECK(element_value(DType::int32, bytes_of<std::int32_t>({1, -2147483647 - 1}), 1) ==
        -2147483648.0);
  CHECK(element_value(DType::int16, bytes_of<std::int16_t>({-3}), 0) == -3);
  CHECK(element_value(DType::int8, bytes_of<std::int8_t>({-128}), 0) == -128);
  CHECK(element_value(DType::uint8, bytes_of<std::uint8_t>({255}), 0) == 255);
  CHECK(element_value(DType::boolean, bytes_of<std::uint8_t>({1}), 0) == 1);
  CHECK_THROWS_AS(element_value(DType::int32, bytes_of<std::int32_t>({1}), 1), Error);
}

TEST_CASE("rounding is to nearest even, in one step from double") {
  // A tie of float16 that a detour through float32 would see as one: 1 + 2^-11 + 2^-40.
  CHECK(round_to(DType::float16, 1 + 0x1p-11 + 0x1p-40, Overflow::infinity) == 1 + 0x1p-10);
  CHECK(round_to(DType::float16, 1 + 0x1p-11, Overflow::infinity) == 1);
  CHECK(round_to(DType::float16, 1 + 3 * 0x1p-11, Overflow::infinity) == 1 + 0x1p-9);
  CHECK(round_to(DType::bfloat16, 1 + 0x1p-8 + 0x1p-45, Overflow::infinity) == 1 + 0x1p-7);
  CHECK(round_to(DType::float32, 1 + 0x1p-24, Overflow::infinity) == 1);
  CHECK(same(round_to(DType::float16, -0x1p-25, Overflow::infinity), -0.0));
  CHECK(round_to(DType::float16, 0x1.8p-25, Overflow::infinity) == 0x1p-24);
  CHECK(same(round_to(DType::float32, -0.0, Overflow::infinity), -0.0));
  CHECK(round_to(DType::float64, 5e-324, Overflow::infinity) == 5e-324);
  CHECK(round_to(DType::int32, 2.5, Overflow::infinity) == 2);
  CHECK(round_to(DType::int32, 3.5, Overflow::infinity) == 4);
  CHECK(round_to(DType::int8, 1000, Overflow::infinity) == 127);
  CHECK(round_to(DType::uint8, -3, Overflow::infinity) == 0);
}

TEST_CASE("overflow begins half a step above the largest value") {
  struct Row {
    DType dtype;
    double largest, first_over;  // the tie, which rounds to the even code above
    double infinity;
  };
  // e4m3: 464 is the tie between 448, which is even, and 480, which is NaN's code.
  const Row rows[] = {
      {DType::float32, 0x1.fffffep127, 0x1.ffffffp127, kInf},
      {DType::float16, 65504, 65520, kInf},
      {DType::bfloat16, 0x1.fep127, 0x1.ffp127, kInf},
      {DType::float8_e5m2, 57344, 61440, kInf},
      {DType::float8_e4m3, 448, std::nextafter(464, 500), kNaN},
      {DType::float4_e2m1, 6, 7, 6},
  };
  for (const Row& row : rows) {
    CAPTURE(name(row.dtype));
    for (double sign : {1.0, -1.0}) {
      const double below = sign * std::nextafter(row.first_over, 0);
      CHECK(same(round_to(row.dtype, below, Overflow::infinity), sign * row.largest));
      for (double value : {row.first_over, 1e300, kInf}) {
        CHECK(same(round_to(row.dtype, sign * value, Overflow::infinity), sign * row.infinity));
        CHECK(same(round_to(row.dtype, sign * value, Overflow::saturate), sign * row.largest));
      }
    }
    const double nan = round_to(row.dtype, kNaN, Overflow::saturate);
    CHECK((row.dtype == DType::float4_e2m1 ? std::fabs(nan) == 6 : std::isnan(nan)));
  }
}

TEST_CASE("the oracle and the kernels round alike") {
  std::mt19937_64 draw(7);
  std::vector<DType> dtypes(std::begin(kSmall), std::end(kSmall));
  for (DType more : {DType::float32, DType::int32, DType::int16, DType::int8, DType::uint8}) {
    dtypes.push_back(more);
  }
  for (DType dtype : dtypes) {
    CAPTURE(name(dtype));
    int different = 0;
    const auto check = [&](double value) {
      for (bool saturate : {false, true}) {
        const double oracle =
            round_to(dtype, value, saturate ? Overflow::saturate : Overflow::infinity);
        // Only types of at most 16 bits saturate (challenge.cc).
        if (saturate && bits(dtype) > 16) continue;
        const double kernel = rounded_to(dtype, value, saturate);
        if (!same(oracle, kernel) && different++ < 5) {
          FAIL_CHECK(value << std::string(saturate ? " saturated" : "") << ": oracle " << oracle
                           << ", kernel " << kernel);
        }
      }
    };
    for (double value : {0.0, -0.0, kInf, -kInf, kNaN, 5e-324, 1e300, -1e300}) check(value);
    // Every midpoint between neighbours, and just beside it.
    if (is_floating(dtype) && bits(dtype) <= 16) {
      for (std::uint32_t code = 0; code + 1 < (1u << bits(dtype)); ++code) {
        const double a = decode_code(dtype, code), b = decode_code(dtype, code + 1);
        if (!std::isfinite(a) || !std::isfinite(b)) continue;
        const double middle = (a + b) / 2;
        for (double value : {middle, std::nextafter(middle, kInf), std::nextafter(middle, -kInf)}) {
          check(value);
        }
      }
    }
    std::uniform_real_distribution<double> exponent(-170, 140), mantissa(-2, 2);
    for (int i = 0; i < 20'000; ++i) check(std::ldexp(mantissa(draw), int(exponent(draw))));
  }
}

TEST_CASE("close compares with the sum of both tolerances, the limit included") {
  const Check check{CheckKind::close, 0.25, 0.5};
  CHECK(compare_doubles(check, {5.5, 2.5}, {4, 4}).mismatched == 0);
  CHECK(compare_doubles(check, {std::nextafter(5.5, 6)}, {4}).mismatched == 1);
  CHECK(compare_doubles(check, {-5.5}, {-4}).mismatched == 0);
  // Two roundings: 0.1 * 0.1 + 0.01 fused is smaller.
  const Check fused{CheckKind::close, 0.1, 0.01};
  const double limit = 0.01 + 0.1 * 0.1;
  REQUIRE(std::fma(0.1, 0.1, 0.01) != limit);
  CHECK(compare_doubles(fused, {0.1 + limit}, {0.1}).mismatched ==
        (std::fabs((0.1 + limit) - 0.1) <= limit ? 0 : 1));
}

TEST_CASE("a report counts, places and measures") {
  const CompareReport report = compare_doubles(kClose, {1, 3, 1, 2.5, 0.5}, {1, 2, 1, 2, 0});
  CHECK(report.mismatched == 3);
  CHECK(report.first_index == 1);
  CHECK(report.nonfinite == 0);
  CHECK(std::bit_cast<double>(report.worst_abs_bits) == 1);
  CHECK(std::bit_cast<double>(report.worst_rel_bits) == 0.5);  // expected 0 has no relative error
  const CompareReport clean = compare_doubles(kClose, {1}, {1});
  CHECK(clean.mismatched == 0);
  CHECK(clean.first_index == ~std::uint64_t{0});
}

TEST_CASE("NaN and infinity must be where expected has them and nowhere else") {
  for (const Check& check : {kExact, Check{CheckKind::close, 1, 1e30}}) {
    CHECK(compare_doubles(check, {kNaN, kInf, -kInf}, {kNaN, kInf, -kInf}).mismatched == 0);
    CHECK(compare_doubles(check, {-kNaN}, {kNaN}).mismatched == 0);
    const std::pair<double, double> wrong[] = {{1, kNaN},    {kNaN, 1},     {kInf, 1},
                                               {1, kInf},    {kInf, -kInf}, {kNaN, kInf},
                                               {kInf, kNaN}, {0, kNaN}};
    for (const auto& [out, expected] : wrong) {
      const CompareReport report = compare_doubles(check, {out}, {expected});
      CHECK(report.mismatched == 1);
      CHECK(report.nonfinite == 1);
      CHECK(report.worst_abs_bits == 0);
    }
  }
}

TEST_CASE("an expected value that overflows the output's type is infinity there, or saturates") {
  CompareParams params = params_of(DType::float16, DType::float64, kClose, 2);
  const auto expected = bytes_of<double>({1e5, -1e5});
  CHECK(compare_on_host(params, bytes_of<std::uint16_t>({0x7c00, 0xfc00}), expected).mismatched ==
        0);
  CHECK(compare_on_host(params, bytes_of<std::uint16_t>({0x7bff, 0xfbff}), expected).nonfinite ==
        2);
  params.saturate = 1;
  CHECK(compare_on_host(params, bytes_of<std::uint16_t>({0x7bff, 0xfbff}), expected).mismatched ==
        0);
}

TEST_CASE("exact: -0 is 0 unless signed_zero") {
  CHECK(compare_doubles(kExact, {-0.0, 0.0}, {0.0, -0.0}).mismatched == 0);
  Check strict = kExact;
  strict.signed_zero = true;
  CHECK(compare_doubles(strict, {-0.0, 0.0, -0.0}, {0.0, -0.0, -0.0}).mismatched == 2);
  CHECK(compare_doubles(strict, {1.0}, {std::nextafter(1.0, 2)}).mismatched == 1);
}

TEST_CASE("exact on 64-bit integers sees what a double cannot hold") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const CompareParams params = params_of(DType::int64, DType::int64, kExact, 1);
  CHECK(compare_on_host(params, bytes_of<std::int64_t>({big}), bytes_of<std::int64_t>({big}))
            .mismatched == 0);
  CHECK(compare_on_host(params, bytes_of<std::int64_t>({big - 1}), bytes_of<std::int64_t>({big}))
            .mismatched == 1);
}

TEST_CASE("a bool is 0 or 1: poison is not true") {
  const CompareParams params = params_of(DType::boolean, DType::boolean, kExact, 3);
  CHECK(
      compare_on_host(params, bytes_of<std::uint8_t>({1, 0, 1}), bytes_of<std::uint8_t>({1, 0, 1}))
          .mismatched == 0);
  CHECK(compare_on_host(params, bytes_of<std::uint8_t>({2, 0, 255}),
                        bytes_of<std::uint8_t>({1, 0, 1}))
            .mismatched == 2);
}

TEST_CASE("poison that is still there is counted for every element size") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    CAPTURE(name(dtype));
    const std::uint64_t count = 100;
    CompareParams params = params_of(dtype, dtype, kExact, count);
    params.poison_key = 0x0123456789abcdef;
    const auto size = static_cast<std::size_t>(size_bytes({"y", dtype, {100}, {}}));
    std::vector<std::byte> poison(size), expected(size);
    for (std::size_t b = 0; b < size; ++b) {
      poison[b] = static_cast<std::byte>(poison_byte(params.poison_key, b));
      expected[b] = static_cast<std::byte>(0x11);
    }
    const CompareReport report = compare_on_host(params, poison, expected);
    CHECK(report.mismatched > 80);
    CHECK(report.still_poisoned == report.mismatched);
    std::vector<std::byte> zeros(size);
    CHECK(compare_on_host(params, zeros, expected).still_poisoned <= (bits(dtype) == 4 ? 20 : 3));
  }
}

TEST_CASE("judge allows the fraction the check allows, rounded down, but never a stray NaN") {
  const OutputSpec output = output_of(DType::float32, DType::float64, {3, 5});
  Check check = kClose;
  CompareReport report{};
  report.first_index = ~std::uint64_t{0};
  CHECK(!judge(output, check, report, 15).has_value());
  report.mismatched = 1;
  report.first_index = 7;
  CHECK(judge(output, check, report, 15).has_value());
  check.max_mismatched = 0.2;
  report.mismatched = 3;
  CHECK(!judge(output, check, report, 15).has_value());
  report.mismatched = 4;
  CHECK(judge(output, check, report, 15).has_value());
  report.mismatched = report.nonfinite = 1;
  CHECK(judge(output, check, report, 15).has_value());
  report.mismatched = 16;
  CHECK_THROWS_AS(judge(output, check, report, 15), Error);
}

TEST_CASE("a failure says what a contestant needs") {
  const OutputSpec output = output_of(DType::float32, DType::float64, {240, 18});
  const Check check{CheckKind::close, 1e-5, 1e-5};
  CompareReport report{};
  report.mismatched = 12;
  report.first_index = 17;
  report.still_poisoned = 12;
  report.worst_abs_bits = std::bit_cast<std::uint64_t>(0.25);
  report.worst_rel_bits = std::bit_cast<std::uint64_t>(1.0);
  auto failure = judge(output, check, report, 4096);
  REQUIRE(failure.has_value());
  CHECK(failure->first_position == std::vector<std::int64_t>{0, 17});
  failure->out = 0.5;
  failure->expected = 0.25;
  CHECK(
      describe(*failure, check) ==
      "output y: 12 of 4096 elements differ; first at [0, 17]: got 0.5, expected 0.25 (allowed "
      "1e-05 + 1e-05*|expected|); worst error 0.25, relative 1; 12 still hold the poison that was "
      "there before the launch: unwritten output. Every element must be written, on every launch");

  failure->unwritten = 0;
  failure->nonfinite = 1;
  failure->mismatched = 1;
  failure->out = kNaN;
  failure->check = "exact";
  CHECK(describe(*failure, kExact) ==
        "output y: 1 of 4096 elements differs; first at [0, 17]: got nan, expected 0.25; 1 is NaN "
        "or infinite on one side only");

  // Digits enough to see the difference.
  failure->nonfinite = 0;
  failure->out = std::nextafter(0.25, 1);
  CHECK(describe(*failure, kExact).find("got 0.25000000000000006, expected 0.25") !=
        std::string::npos);

  const auto values = [&](double out, double expected) {
    failure->out = out;
    failure->expected = expected;
    const std::string text = describe(*failure, kExact);
    return text.substr(text.find("got "));
  };
  CHECK(values(1'073'741'858, 34) == "got 1073741858, expected 34");
  CHECK(values(0, -0.0) == "got 0, expected -0");
  CHECK(values(-kNaN, 1) == "got nan, expected 1");
  CHECK(values(0x1p62, 0x1p62) ==
        "got 4.6116860184273879e+18, expected 4.6116860184273879e+18, but for what a double does "
        "not hold");

  failure->output = "x";
  failure->check = kInputsChanged;
  CHECK(describe(*failure, check).starts_with("input x: changed during the replay"));
}

TEST_CASE("a position in a scalar and in three dimensions") {
  CompareReport report{};
  report.mismatched = 1;
  report.first_index = 0;
  const auto scalar = judge(output_of(DType::float32, DType::float64, {}), kClose, report, 1);
  REQUIRE(scalar.has_value());
  CHECK(scalar->first_position.empty());
  report.first_index = 23 + 5;
  const auto cube = judge(output_of(DType::float32, DType::float64, {2, 3, 7}), kClose, report, 42);
  REQUIRE(cube.has_value());
  CHECK(cube->first_position == std::vector<std::int64_t>{1, 1, 0});
}
