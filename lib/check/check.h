// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "challenge/challenge.h"
#include "driver/kernels.h"

namespace kjudge {

// Correctness policies. The device computes a report (driver/kernels.h), of elements or of rows;
// this turns it into a pass or a failure a contestant can act on. oracle.h is what tests hold the
// device to.

// CheckFailure::check where not an output is wrong but an input was written to.
inline constexpr std::string_view kInputsChanged = "inputs changed";

// Of a check that measures rows. `rows` is 1 where it measures the tensor.
struct RowFailure {
  std::uint64_t rows = 0, failed = 0, first = 0;
  double worst = 0, limit = 0;     // in the check's own measure
  std::optional<double> baseline;  // of versus_baseline: the error that the limit is made of
};

// Of the check of codes.
struct CodeFailure {
  std::uint64_t beyond = 0;       // elements more steps off than the check allows
  std::uint64_t worst_steps = 0;  // of any element finite on both sides, at most 2^62
};

// Why an output is wrong, for the contestant to act on.
struct CheckFailure {
  std::string output;
  std::string check;  // name of its kind, or kInputsChanged
  std::uint64_t elements = 0, mismatched = 0, first_index = 0, nonfinite = 0, unwritten = 0;
  std::vector<std::int64_t> first_position;
  double out = 0, expected = 0;  // at first_index
  double worst_abs = 0, worst_rel = 0;
  std::string regime;
  int round = 0, pair = 0;
  std::optional<RowFailure> rows;  // first_index is then the worst element of the first failed row
  std::optional<CodeFailure> codes;
};

// Whether a check of this kind measures rows or compares elements, and whether it is computed from
// sums of rows, as row_bound is too.
bool measures_rows(CheckKind kind);
bool needs_sums(CheckKind kind);

// The rows that `check` measures of an output: of the last dimension, or the tensor as one.
std::uint64_t row_size(const OutputSpec& output, const Check& check);

// Parameters but for addresses, counts and poison key.
CompareParams compare_params(const OutputSpec& output, const Check& check);
SumParams sum_params(const OutputSpec& output);
JudgeRowsParams judge_rows_params(const OutputSpec& output, const Check& check);

// The baseline's error for versus_baseline, of the errors of its rows: 99.9 % are at most that.
double baseline_error(std::vector<double> row_errors);
double versus_baseline_limit(const Check& check, double baseline_error);

// nullopt when the report passes. The caller, who has the bytes, adds the values at first_index,
// regime, round and pair. A NaN or infinity out of place fails whatever fraction may differ.
std::optional<CheckFailure> judge(const OutputSpec& output, const Check& check,
                                  const CompareReport& report, std::uint64_t elements);

// The same of rows. The caller also finds the worst element of the first failed row, and then adds
// what explain() takes from it and from an exact comparison of all elements.
std::optional<CheckFailure> judge_rows(const OutputSpec& output, const Check& check,
                                       const JudgeRowsParams& params, const RowReport& report);
void explain(const OutputSpec& output, const CompareReport& all, std::uint64_t worst_index,
             CheckFailure& failure);

// "output y: 12 of 4096 elements differ; first at [0, 17]: got 0.5, expected 0.25 (allowed 1e-05 +
// 1e-05*|expected|); ...": one line, what is wrong and what to do.
std::string describe(const CheckFailure& failure, const Check& check);

}  // namespace kjudge
