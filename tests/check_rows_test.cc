// SPDX-License-Identifier: Apache-2.0
// Checks that look at rows, and at codes of quantized outputs.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "check/check.h"
#include "check/oracle.h"
#include "check_outputs.h"
#include "driver/kernels/number.h"
#include "error.h"

using namespace kjudge;
using namespace kjudge::check_outputs;

namespace {

// Rows of float64, summed by the oracle.
std::vector<RowSums> sums_of(const std::vector<double>& out, const std::vector<double>& expected,
                             std::uint64_t row_size, DType dtype = DType::float64) {
  SumParams params = sum_params(output_of(dtype, DType::float64));
  params.row_size = row_size;
  params.count = expected.size();
  std::vector<std::byte> stored(out.size() * 8);
  for (std::size_t i = 0; i < out.size(); ++i)
    store_element(dtype, stored.data(), i, out[i], false);
  std::vector<RowSums> rows;
  for (std::uint64_t row = 0; row < params.count / row_size; ++row) {
    rows.push_back(sum_row_on_host(params, stored, bytes_of(expected), row));
  }
  return rows;
}

JudgeRowsParams rows_of(const Check& check, const std::vector<std::int64_t>& dims,
                        DType dtype = DType::float64) {
  const OutputSpec output = output_of(dtype, DType::float64, dims);
  JudgeRowsParams params = judge_rows_params(output, check);
  params.rows = static_cast<std::uint64_t>(element_count(dims)) / params.row_size;
  return params;
}

// The report on rows of two elements.
RowReport judged(const Check& check, const std::vector<double>& out,
                 const std::vector<double>& expected, DType dtype = DType::float64) {
  const auto rows = static_cast<std::int64_t>(out.size() / 2);
  return judge_rows_on_host(rows_of(check, {rows, 2}, dtype), sums_of(out, expected, 2, dtype));
}

Check rel_l2(double limit, double quantile = 1) {
  Check check{CheckKind::rel_l2};
  check.limit = limit;
  check.quantile = quantile;
  return check;
}

Check cosine_check(double least) {
  Check check{CheckKind::cosine};
  check.limit = least;
  return check;
}

}  // namespace

TEST_CASE("a row is the last dimension, or the tensor") {
  const OutputSpec cube = output_of(DType::float32, DType::float64, {2, 3, 7});
  Check check = rel_l2(0.1);
  CHECK(row_size(cube, check) == 7);
  CHECK(row_size(output_of(DType::float32, DType::float64, {}), check) == 1);
  CHECK(row_size(output_of(DType::float32, DType::float64, {5}), check) == 5);
  check.per = Per::tensor;
  CHECK(row_size(cube, check) == 42);
}

TEST_CASE("rel_l2 is the norm of the error by the norm of expected, the limit included") {
  // Row errors 0.25, 0 and 5/13.
  const std::vector<double> expected = {3, 4, 1, 1, 5, 12}, out = {3, 5.25, 1, 1, 8, 16};
  const RowReport report = judged(rel_l2(0.25), out, expected);
  CHECK(report.failed == 1);
  CHECK(report.first_row == 2);
  CHECK(std::bit_cast<double>(report.worst_bits) == 5.0 / 13);
  CHECK(report.stray == 0);
  CHECK(report.any_nonzero == 1);
  CHECK(judged(rel_l2(std::nextafter(0.25, 0)), out, expected).first_row == 0);
  CHECK(judged(rel_l2(5.0 / 13), out, expected).failed == 0);
}

TEST_CASE("cosine is blind to a factor, and not to a sign or to another direction") {
  CHECK(judged(cosine_check(0.999999), {30, 40}, {3, 4}).failed == 0);
  CHECK(judged(cosine_check(0.1), {-3, -4}, {3, 4}).failed == 1);
  const RowReport report = judged(cosine_check(0.97), {4, 3}, {3, 4});
  CHECK(report.failed == 1);
  CHECK(std::bit_cast<double>(report.worst_bits) == 1 - 0.96);
  CHECK(judged(cosine_check(0.96), {4, 3}, {3, 4}).failed == 0);
  CHECK(judged(cosine_check(0.1), {0, 0}, {3, 4}).failed == 1);
}

TEST_CASE("a row of zeros is right when it is about zero in its type") {
  struct Row {
    DType dtype;
    double normal;
  };
  for (const Row& row : {Row{DType::float64, 0x1p-1022}, Row{DType::float32, 0x1p-126},
                         Row{DType::bfloat16, 0x1p-126}, Row{DType::float16, 0x1p-14},
                         Row{DType::float8_e5m2, 0x1p-14}, Row{DType::float8_e4m3, 0x1p-6},
                         Row{DType::float4_e2m1, 1}}) {
    CAPTURE(name(row.dtype));
    for (const Check& check : {rel_l2(0.5), cosine_check(0.5)}) {
      const double n = row.normal;
      CHECK(judged(check, {n, -n, 1, 1}, {0, 0, 1, 1}, row.dtype).failed == 0);
      const RowReport report = judged(check, {2 * n, 0, 1, 1}, {0, -0.0, 1, 1}, row.dtype);
      CHECK(report.failed == 1);
      CHECK(report.first_row == 0);
      CHECK(std::bit_cast<double>(report.worst_bits) == kInf);
    }
  }
  CHECK(judged(rel_l2(0.5), {0, 1}, {0, 0}, DType::int32).failed == 1);
  CHECK(judged(rel_l2(0.5), {0, 0}, {0, 0}, DType::int32).failed == 0);
  CHECK(judged(rel_l2(0.5), {0, 0}, {0, 0}).any_nonzero == 0);
  CHECK(judged(rel_l2(0.5), {kNaN, 0}, {kNaN, 0}).any_nonzero == 1);
}

TEST_CASE("rows of float64 are measured at both ends of the range") {
  for (double scale : {1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e306}) {
    CAPTURE(scale);
    const RowReport report = judged(rel_l2(0.24), {3 * scale, 5 * scale}, {3 * scale, 4 * scale});
    CHECK(report.failed == 0);
    CHECK(std::bit_cast<double>(report.worst_bits) == doctest::Approx(0.2).epsilon(1e-3));
    CHECK(judged(rel_l2(0.19), {3 * scale, 5 * scale}, {3 * scale, 4 * scale}).failed == 1);
    CHECK(judged(cosine_check(0.99), {6 * scale, 8 * scale}, {3 * scale, 4 * scale}).failed == 0);
  }
  CHECK(judged(rel_l2(1), {1e300, 0}, {1e-300, 0}).failed == 1);
  CHECK(judged(rel_l2(1), {1.7e308, 0}, {-1.7e308, 0}).failed == 1);
}

TEST_CASE("an infinity or NaN in its place is left out of the sums, elsewhere the row is wrong") {
  for (const Check& check : {rel_l2(1), cosine_check(0.1)}) {
    CHECK(judged(check, {kInf, 4, kNaN, 1}, {kInf, 4, kNaN, 1}).failed == 0);
    const RowReport report = judged(check, {1, 1, kInf, 4, 1, kNaN}, {1, 1, -kInf, 4, 1, 1});
    CHECK(report.failed == 2);
    CHECK(report.stray == 2);
    CHECK(report.first_row == 1);
  }
}

TEST_CASE("a long row is summed in parts, whatever the exponents of the parts") {
  std::vector<double> expected, out;
  double squares = 0, errors = 0;
  for (int i = 0; i < 3 * 4096 + 17; ++i) {
    const double size = i < 4096 ? 1e-200 : i < 8192 ? 1e200 : 1e199;
    expected.push_back(size * (1 + i % 5));
    out.push_back(expected.back() * (1 + 1e-3 * (i % 3)));
    squares += (expected.back() / 1e200) * (expected.back() / 1e200);
    errors += (out.back() - expected.back()) / 1e200 * ((out.back() - expected.back()) / 1e200);
  }
  const RowSums sums = sums_of(out, expected, expected.size())[0];
  CHECK(sums.finite == expected.size());
  CHECK(sums.exponent == 666);  // 5e200
  CHECK(sums.difference / sums.expected == doctest::Approx(errors / squares).epsilon(1e-12));
}

TEST_CASE("judge_rows allows what the quantile leaves, but never a stray NaN") {
  const OutputSpec output = output_of(DType::float32, DType::float64, {100, 5});
  for (const auto& [quantile, allowed] : {std::pair{1.0, 0}, {0.99, 1}, {0.985, 1}, {0.55, 45}}) {
    CAPTURE(quantile);
    const Check check = rel_l2(1e-5, quantile);
    const JudgeRowsParams params = rows_of(check, {100, 5}, DType::float32);
    RowReport report{};
    report.first_row = 3;
    report.failed = static_cast<std::uint64_t>(allowed);
    CHECK(!judge_rows(output, check, params, report).has_value());
    ++report.failed;
    CHECK(judge_rows(output, check, params, report).has_value());
    report.failed = report.stray = 1;
    CHECK(judge_rows(output, check, params, report).has_value());
    report.failed = 101;
    CHECK_THROWS_AS(judge_rows(output, check, params, report), Error);
  }
}

TEST_CASE("a failure of rows says what a contestant needs") {
  const OutputSpec output = output_of(DType::float32, DType::float64, {100, 5});
  const auto text = [&](Check check, std::uint64_t failed, double worst) {
    const JudgeRowsParams params = rows_of(check, {100, 5}, DType::float32);
    RowReport report{};
    report.failed = failed;
    report.first_row = check.per == Per::tensor ? 0 : 3;
    report.worst_bits = std::bit_cast<std::uint64_t>(worst);
    auto failure = judge_rows(output, check, params, report);
    REQUIRE(failure.has_value());
    CompareReport all{};
    all.mismatched = 20;
    all.worst_abs_bits = std::bit_cast<std::uint64_t>(0.25);
    all.worst_rel_bits = std::bit_cast<std::uint64_t>(0.5);
    explain(output, all, 17, *failure);
    failure->out = 0.5;
    failure->expected = 0.25;
    return describe(*failure, check);
  };
  CHECK(text(rel_l2(1e-5, 0.98), 3, 0.0123456) ==
        "output y: 3 of 100 rows are wrong (2 may be); worst row: relative L2 error 0.0123, "
        "allowed 1e-05; largest error of the first of them at [3, 2]: got 0.5, expected 0.25; "
        "worst error 0.25, relative 0.5");
  CHECK(
      text(rel_l2(1e-5), 1, kInf)
          .starts_with(
              "output y: 1 of 100 rows is wrong; worst row: not 0 where all that is expected is 0; "
              "largest"));
  // What is measured beside a stray NaN is right.
  CHECK(
      text(rel_l2(1e-5), 1, 0)
          .starts_with("output y: 1 of 100 rows is wrong; largest error of the first of them at"));
  Check tensor = cosine_check(0.99);
  tensor.per = Per::tensor;
  CHECK(text(tensor, 1, 0).starts_with("output y: largest error of the tensor at [3, 2]: got"));
  CHECK(text(tensor, 1, 0.25) ==
        "output y: cosine similarity 0.75, at least 0.99 is needed; largest error of the tensor "
        "at [3, 2]: got 0.5, expected 0.25; worst error 0.25, relative 0.5");
}

namespace {

CompareReport bounded(const Check& check, const std::vector<double>& out,
                      const std::vector<double>& expected) {
  CompareParams params = compare_params(output_of(DType::float64, DType::float64, {1, 2}), check);
  params.count = out.size();
  return compare_on_host(params, bytes_of(out), bytes_of(expected), sums_of(out, expected, 2));
}

CompareReport coded(DType dtype, std::uint32_t within, const std::vector<double>& out,
                    const std::vector<double>& expected) {
  Check check{CheckKind::codes};
  check.within = within;
  const CompareParams params = params_of(dtype, DType::float64, check, out.size());
  std::vector<std::byte> stored(out.size() * 8);
  for (std::size_t i = 0; i < out.size(); ++i)
    store_element(dtype, stored.data(), i, out[i], false);
  return compare_on_host(params, stored, bytes_of(expected));
}

}  // namespace

TEST_CASE("row_bound allows a share of the element and of its row's size") {
  Check check{CheckKind::row_bound};
  check.rtol = 0.25;
  check.c = 0.5;
  // The root mean square of {1, 7} is 5: 2.5 + 0.25 and 2.5 + 1.75.
  CHECK(bounded(check, {3.75, 11.25}, {1, 7}).mismatched == 0);
  CHECK(bounded(check, {std::nextafter(3.75, 4), 7}, {1, 7}).mismatched == 1);
  const CompareReport report = bounded(check, {1, 7, 1, 11.5}, {1, 7, 1, 7});
  CHECK(report.mismatched == 1);
  CHECK(report.first_index == 3);
  // Another row is no help, and elements that are infinite do not count.
  CHECK(bounded(check, {1.5, 1, 100, 100}, {1, 1, 100, 100}).mismatched == 0);
  CHECK(bounded(check, {2, 1, 100, 100}, {1, 1, 100, 100}).mismatched == 1);
  CHECK(bounded(check, {1.7, kInf}, {1, kInf}).mismatched == 0);
  CHECK(bounded(check, {1.8, kInf}, {1, kInf}).mismatched == 1);
  CHECK(bounded(check, {1, 1}, {1, kInf}).nonfinite == 1);
  // Rows of zeros.
  const double n = 0x1p-1022;
  CHECK(bounded(check, {n, -n}, {0, 0}).mismatched == 0);
  CHECK(bounded(check, {n, 2 * n}, {0, 0}).mismatched == 2);
}

TEST_CASE("codes are steps of the type") {
  // 1.5, 2, 3, 4, 6 are neighbours in e2m1.
  const CompareReport report = coded(DType::float4_e2m1, 1, {2, 3, 4, 4, 6}, {1.5, 3, 2, 4, 4});
  CHECK(report.mismatched == 3);
  CHECK(report.first_index == 0);
  CHECK(report.beyond == 1);
  CHECK(report.first_beyond == 2);
  CHECK(report.worst_steps == 2);
  CHECK(coded(DType::float8_e4m3, 0, {-0.0, 0x1p-9}, {0, -0x1p-9}).worst_steps == 2);
  CHECK(coded(DType::float8_e4m3, 0, {-0.0}, {0}).mismatched == 0);
  CHECK(coded(DType::float16, 0, {0x1p-14}, {0x1p-14 - 0x1p-24}).worst_steps == 1);
  CHECK(coded(DType::float32, 0, {1}, {1 - 0x1p-24}).worst_steps == 1);
  CHECK(coded(DType::float64, 0, {5e-324}, {-5e-324}).worst_steps == 2);
  CHECK(coded(DType::int8, 0, {-128}, {127}).worst_steps == 255);
  CHECK(coded(DType::uint8, 0, {255}, {0}).worst_steps == 255);
  const CompareReport stray = coded(DType::bfloat16, 1000, {kNaN, kInf, 1}, {1, kInf, 1});
  CHECK(stray.mismatched == 1);
  CHECK(stray.beyond == 1);
  CHECK(stray.worst_steps == 0);
}

TEST_CASE("judge of codes: the share, the steps, and what is said") {
  const OutputSpec output = output_of(DType::int8, DType::int8, {10, 20});
  Check check{CheckKind::codes};
  CompareReport report{};
  report.mismatched = 2;
  report.first_index = 7;
  report.worst_steps = 1;
  CHECK(!judge(output, check, report, 200).has_value());
  report.mismatched = 3;
  auto failure = judge(output, check, report, 200);
  REQUIRE(failure.has_value());
  CHECK(failure->first_index == 7);
  failure->out = 1;
  failure->worst_abs = 1;
  CHECK(describe(*failure, check) ==
        "output y: 3 of 200 codes differ (2 may, by 1 step); first at [0, 7]: got 1, expected 0; "
        "worst error 1");
  report.mismatched = report.beyond = 1;
  report.first_beyond = 21;
  report.worst_steps = ~std::uint64_t{0};
  failure = judge(output, check, report, 200);
  REQUIRE(failure.has_value());
  CHECK(failure->codes.value().worst_steps == std::uint64_t{1} << 62);
  failure->codes->worst_steps = 5;
  failure->out = 5;
  failure->worst_abs = 5;
  CHECK(describe(*failure, check) ==
        "output y: 1 of 200 codes differs (2 may, by 1 step); 1 is further off, up to 5 steps; "
        "first of the worst at [1, 1]: got 5, expected 0; worst error 5");
  CHECK(describe(judge(output, Check{CheckKind::row_bound, 0.5}, report, 200).value(),
                 Check{CheckKind::row_bound, 0.5})
            .find("(allowed 0*rms of the row + 0.5*|expected|)") != std::string::npos);
}

TEST_CASE("the baseline's error is that of its rows but one in a thousand") {
  const auto errors = [](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back((i * 7919) % count);  // 0 .. count - 1
    return values;
  };
  CHECK(baseline_error({}) == 0);
  CHECK(baseline_error({0.25}) == 0.25);
  CHECK(baseline_error(errors(999)) == 998);
  CHECK(baseline_error(errors(1000)) == 998);
  CHECK(baseline_error(errors(2500)) == 2497);
  Check check{CheckKind::versus_baseline};
  check.factor = 3;
  check.floor = 1e-5;
  CHECK(versus_baseline_limit(check, 0.5) == 1.5);
  CHECK(versus_baseline_limit(check, 1e-6) == 1e-5);
  CHECK(measures_rows(check.kind));

  const OutputSpec output = output_of(DType::float32, DType::float64, {100, 5});
  JudgeRowsParams params = rows_of(check, {100, 5}, DType::float32);
  CHECK(params.kind == row_rel_l2);
  params.limit = 1.5e-5;
  RowReport report{};
  report.failed = 1;
  report.worst_bits = std::bit_cast<std::uint64_t>(0.125);
  auto failure = judge_rows(output, check, params, report);
  REQUIRE(failure.has_value());
  failure->rows->baseline = 5e-6;
  failure->first_position = {0, 0};
  CHECK(describe(*failure, check)
            .starts_with("output y: 1 of 100 rows is wrong; worst row: relative L2 error 0.125, "
                         "allowed 1.5e-05 where the baseline has 5e-06; largest error of the first "
                         "of them at [0, 0]: "));
}
