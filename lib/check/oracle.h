// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "challenge/challenge.h"
#include "driver/kernels.h"

namespace kjudge {

// What kjudge's kernels of checks compute, from the same bytes, one element at a time: the oracle
// that tests hold them to. The same reports to the last bit.

// `rows` are the sums that params.sums stands for.
CompareReport compare_on_host(const CompareParams& params, std::span<const std::byte> out,
                              std::span<const std::byte> expected,
                              std::span<const RowSums> rows = {});

RowSums sum_row_on_host(const SumParams& params, std::span<const std::byte> out,
                        std::span<const std::byte> expected, std::uint64_t row);

// `errors`, where given, gets every row's.
RowReport judge_rows_on_host(const JudgeRowsParams& params, std::span<const RowSums> rows,
                             std::vector<double>* errors = nullptr);

// One element as a double. Exact for every dtype but 64-bit integers above 2^53.
double element_value(DType dtype, std::span<const std::byte> bytes, std::uint64_t index);

// `value` rounded to `dtype`, nearest even, and back.
double round_to(DType dtype, double value, Overflow overflow);

}  // namespace kjudge
