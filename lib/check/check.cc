// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include "error.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 62;  // that a result file holds

// A value as a contestant would write it: 9 digits tell any two float32 apart, and whole numbers
// have all of theirs. The sign of a NaN tells nothing.
std::string number(double value, int digits = 9) {
  std::array<char, 40> text;
  if (std::isnan(value)) return "nan";
  const bool whole = std::fabs(value) < 0x1p53 && std::trunc(value) == value;
  if (whole && digits == 9) {
    std::snprintf(text.data(), text.size(), "%.0f", value);
  } else {
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  }
  return text.data();
}

CompareKind compare_kind(CheckKind kind) {
  switch (kind) {
    case CheckKind::exact:
      return compare_exact;
    case CheckKind::row_bound:
      return compare_row_bound;
    case CheckKind::codes:
      return compare_codes;
    default:
      return compare_close;
  }
}

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 0x1p-1022;
    case DType::float32:
    case DType::bfloat16:
      return 0x1p-126;
    case DType::float16:
    case DType::float8_e5m2:
      return 0x1p-14;
    case DType::float8_e4m3:
      return 0x1p-6;
    case DType::float4_e2m1:
      return 1;
    default:
      return 0;
  }
}

std::vector<std::int64_t> position(const std::vector<std::int64_t>& dims, std::uint64_t index) {
  std::vector<std::int64_t> position(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    const auto dim = static_cast<std::uint64_t>(dims[i]);
    position[i] = static_cast<std::int64_t>(index % dim);
    index /= dim;
  }
  return position;
}

std::string bracketed(const std::vector<std::int64_t>& position) {
  std::string text;
  for (std::int64_t index : position) text += cat(text.empty() ? "" : ", ", index);
  return cat("[", text, "]");
}

// The share must hold, rounded up: of 3 elements 0.99 is 3. The product may be an ulp above the
// whole number that it should be, as 100 * 0.55 is.
std::uint64_t allowed_beyond(double share, std::uint64_t count) {
  const double needed = std::ceil(share * static_cast<double>(count) * (1 - 0x1p-40));
  return count - std::min(count, static_cast<std::uint64_t>(needed));
}

std::string values_text(const CheckFailure& failure) {
  std::string got = number(failure.out), wanted = number(failure.expected);
  if (got == wanted) {
    got = number(failure.out, 17);
    wanted = number(failure.expected, 17);
  }
  return cat("got ", got, ", expected ", wanted,
             got == wanted ? ", but for what a double does not hold" : "");
}

std::string elements_text(const CheckFailure& failure, const Check& check) {
  std::string text = cat(failure.mismatched, " of ", failure.elements,
                         failure.elements == 1 ? " element" : " elements",
                         failure.mismatched == 1 ? " differs" : " differ", "; first at ",
                         bracketed(failure.first_position), ": ", values_text(failure));
  if (check.kind == CheckKind::row_bound) {
    return text + cat(" (allowed ", number(check.c), "*rms of the row + ", number(check.rtol),
                      "*|expected|)");
  }
  if (check.kind != CheckKind::close) return text;
  text += cat(" (allowed ", number(check.atol), " + ", number(check.rtol), "*|expected|");
  if (check.max_mismatched > 0) {
    text += cat(" for all but ", number(100 * check.max_mismatched), " % of the elements");
  }
  return text + ")";
}

std::string codes_text(const CheckFailure& failure, const Check& check) {
  const std::uint64_t far = failure.codes->beyond - failure.nonfinite;
  std::string text =
      cat(failure.mismatched, " of ", failure.elements, failure.elements == 1 ? " code" : " codes",
          failure.mismatched == 1 ? " differs" : " differ", " (",
          allowed_beyond(check.same, failure.elements), " may, by ", check.within,
          check.within == 1 ? " step" : " steps", ")");
  if (far > 0) {
    text += cat("; ", far, far == 1 ? " is" : " are", " further off, up to ",
                failure.codes->worst_steps, " steps");
  }
  return text + cat(failure.codes->beyond > 0 ? "; first of the worst at " : "; first at ",
                    bracketed(failure.first_position), ": ", values_text(failure));
}

// Where nothing but a stray NaN or infinity is wrong, what is measured of the others is right.
bool measured_wrong(const RowFailure& rows, CheckKind kind) {
  return kind == CheckKind::cosine ? !(1 - rows.worst >= rows.limit) : !(rows.worst <= rows.limit);
}

// "relative L2 error 0.01, allowed 1e-05"
std::string measure_text(const RowFailure& rows, CheckKind kind) {
  if (std::isinf(rows.worst)) return "not 0 where all that is expected is 0";
  if (kind == CheckKind::cosine) {
    return cat("cosine similarity ", number(1 - rows.worst), ", at least ", number(rows.limit),
               " is needed");
  }
  std::string text =
      cat("relative L2 error ", number(rows.worst, 3), ", allowed ", number(rows.limit));
  if (rows.baseline) text += cat(" where the baseline has ", number(*rows.baseline, 3));
  return text;
}

std::string rows_text(const CheckFailure& failure, const Check& check) {
  const RowFailure& rows = *failure.rows;
  const bool wrong = measured_wrong(rows, check.kind);
  std::string text;
  if (check.per == Per::row) {
    text = cat(rows.failed, " of ", rows.rows, rows.rows == 1 ? " row" : " rows",
               rows.failed == 1 ? " is wrong" : " are wrong");
    if (check.quantile < 1) {
      text += cat(" (", allowed_beyond(check.quantile, rows.rows), " may be)");
    }
    if (wrong) text += "; worst row: ";
  }
  if (wrong) text += measure_text(rows, check.kind);
  text += cat(text.empty() ? "" : "; ", "largest error of the ",
              check.per == Per::row ? "first of them" : "tensor", " at ",
              bracketed(failure.first_position), ": ", values_text(failure));
  return text;
}

}  // namespace

bool measures_rows(CheckKind kind) {
  return kind == CheckKind::rel_l2 || kind == CheckKind::cosine ||
         kind == CheckKind::versus_baseline;
}

bool needs_sums(CheckKind kind) { return measures_rows(kind) || kind == CheckKind::row_bound; }

std::uint64_t row_size(const OutputSpec& output, const Check& check) {
  const auto& dims = output.tensor.dims;
  if (check.per == Per::tensor) return static_cast<std::uint64_t>(element_count(dims));
  return dims.empty() ? 1 : static_cast<std::uint64_t>(dims.back());
}

SumParams sum_params(const OutputSpec& output) {
  SumParams params{};
  params.dtype = static_cast<std::uint32_t>(output.tensor.dtype);
  params.expected_dtype = static_cast<std::uint32_t>(output.expected_dtype);
  params.saturate = output.overflow == Overflow::saturate;
  return params;
}

JudgeRowsParams judge_rows_params(const OutputSpec& output, const Check& check) {
  JudgeRowsParams params{};
  params.kind = check.kind == CheckKind::cosine ? row_cosine : row_rel_l2;
  params.limit = check.limit;
  params.tiny = smallest_normal(output.tensor.dtype);
  params.row_size = row_size(output, check);
  return params;
}

CompareParams compare_params(const OutputSpec& output, const Check& check) {
  CompareParams params{};
  params.kind = compare_kind(check.kind);
  params.rtol = check.rtol;
  params.atol = check.kind == CheckKind::row_bound ? check.c : check.atol;
  params.within = check.within;
  params.row_size = row_size(output, check);
  params.tiny = smallest_normal(output.tensor.dtype);
  params.signed_zero = check.signed_zero;
  params.dtype = static_cast<std::uint32_t>(output.tensor.dtype);
  params.expected_dtype = static_cast<std::uint32_t>(output.expected_dtype);
  params.saturate = output.overflow == Overflow::saturate;
  return params;
}

std::optional<CheckFailure> judge(const OutputSpec& output, const Check& check,
                                  const CompareReport& report, std::uint64_t elements) {
  KJ_CHECK(report.mismatched <= elements);
  KJ_CHECK(report.nonfinite <= report.mismatched && report.still_poisoned <= report.mismatched);
  // No fraction covers a NaN or an infinity that is not where expected has one.
  const bool codes = check.kind == CheckKind::codes;
  const double allowed = codes ? static_cast<double>(allowed_beyond(check.same, elements))
                               : std::floor(check.max_mismatched * static_cast<double>(elements));
  if (report.nonfinite == 0 && report.beyond == 0 &&
      static_cast<double>(report.mismatched) <= allowed) {
    return std::nullopt;
  }
  KJ_CHECK(report.first_index < elements);
  CheckFailure failure;
  failure.output = output.tensor.name;
  failure.check = name(check.kind);
  failure.elements = elements;
  if (codes) failure.codes = {report.beyond, std::min(report.worst_steps, kMostSteps)};
  explain(output, report, report.beyond > 0 ? report.first_beyond : report.first_index, failure);
  return failure;
}

double baseline_error(std::vector<double> row_errors) {
  if (row_errors.empty()) return 0;
  const std::uint64_t count = row_errors.size();
  const auto place =
      row_errors.begin() + static_cast<std::ptrdiff_t>(count - allowed_beyond(0.999, count) - 1);
  std::nth_element(row_errors.begin(), place, row_errors.end());
  return *place;
}

double versus_baseline_limit(const Check& check, double baseline_error) {
  return std::max(check.factor * baseline_error, check.floor);
}

std::optional<CheckFailure> judge_rows(const OutputSpec& output, const Check& check,
                                       const JudgeRowsParams& params, const RowReport& report) {
  KJ_CHECK(report.failed <= params.rows);
  if (report.stray == 0 && report.failed <= allowed_beyond(check.quantile, params.rows)) {
    return std::nullopt;
  }
  KJ_CHECK(report.first_row < params.rows);
  CheckFailure failure;
  failure.output = output.tensor.name;
  failure.check = name(check.kind);
  failure.elements = params.rows * params.row_size;
  failure.rows = {params.rows, report.failed, report.first_row,
                  std::bit_cast<double>(report.worst_bits), params.limit};
  return failure;
}

void explain(const OutputSpec& output, const CompareReport& all, std::uint64_t worst_index,
             CheckFailure& failure) {
  failure.mismatched = all.mismatched;
  failure.nonfinite = all.nonfinite;
  failure.unwritten = all.still_poisoned;
  failure.worst_abs = std::bit_cast<double>(all.worst_abs_bits);
  failure.worst_rel = std::bit_cast<double>(all.worst_rel_bits);
  failure.first_index = worst_index;
  failure.first_position = position(output.tensor.dims, worst_index);
}

std::string describe(const CheckFailure& failure, const Check& check) {
  if (failure.check == kInputsChanged) {
    return cat("input ", failure.output,
               ": changed during the replay; inputs are read-only, write to the outputs only");
  }
  if (check.kind == CheckKind::custom) {
    return cat("output ", failure.output, ": check.py finds an error of ",
               number(failure.rows->worst), ", at most ", number(check.limit), " is allowed");
  }
  std::string text = cat("output ", failure.output, ": ",
                         failure.rows    ? rows_text(failure, check)
                         : failure.codes ? codes_text(failure, check)
                                         : elements_text(failure, check));
  if (check.kind != CheckKind::exact) {
    text += cat("; worst error ", number(failure.worst_abs, 3));
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
