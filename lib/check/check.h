// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "challenge/challenge.h"
#include "driver/kernels.h"

namespace kjudge {

// Correctness policies. The device computes a CompareReport (driver/kernels.h); this turns it into
// a pass or a failure a contestant can act on. The host oracle is what tests hold the device to.

// CheckFailure::check where not an output is wrong but an input was written to.
inline constexpr std::string_view kInputsChanged = "inputs changed";

// Why an output is wrong, for the contestant to act on.
struct CheckFailure {
  std::string output;
  std::string check;  // "close", "exact", kInputsChanged
  std::uint64_t elements = 0, mismatched = 0, first_index = 0, nonfinite = 0, unwritten = 0;
  std::vector<std::int64_t> first_position;
  double out = 0, expected = 0;  // at first_index
  double worst_abs = 0, worst_rel = 0;
  std::string regime;
  int round = 0, pair = 0;
};

// Compare parameters of `check` but for addresses, count and poison key.
CompareParams compare_params(const OutputSpec& output, const Check& check);

// nullopt when the report passes. The caller, who has the bytes, adds the values at first_index,
// regime, round and pair. A NaN or infinity out of place fails whatever fraction may differ.
std::optional<CheckFailure> judge(const OutputSpec& output, const Check& check,
                                  const CompareReport& report, std::uint64_t elements);

// "output y: 12 of 4096 elements differ; first at [0, 17]: got 0.5, expected 0.25 (allowed 1e-05 +
// 1e-05*|expected|); ...": one line, what is wrong and what to do.
std::string describe(const CheckFailure& failure, const Check& check);

// The host oracle: the same report, from the same bytes, computed one element at a time in double.
CompareReport compare_on_host(const CompareParams& params, std::span<const std::byte> out,
                              std::span<const std::byte> expected);

// One element as a double. Exact for every dtype but 64-bit integers above 2^53.
double element_value(DType dtype, std::span<const std::byte> bytes, std::uint64_t index);

// `value` rounded to `dtype`, nearest even, and back.
double round_to(DType dtype, double value, Overflow overflow);

}  // namespace kjudge
