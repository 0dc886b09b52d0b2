// SPDX-License-Identifier: Apache-2.0
#include "replay/device_checks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "check/oracle.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kMaxReports = 1024;  // outputs x checks of one shape
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
// A fifth of normal values is 0 in float4_e2m1, and half of what a ReLU gives.
constexpr std::uint64_t kManyElements = 64;
constexpr int kManyInputs = 30;  // the pairs of an evaluation are as many
constexpr CompareReport kNothingCompared{0, kNone, 0, 0, 0, 0, 0, 0, kNone, 0};

std::uint64_t elements(const OutputSpec& output) {
  return static_cast<std::uint64_t>(element_count(output.tensor.dims));
}

}  // namespace

DeviceChecks::DeviceChecks(DeviceSide& side, std::span<const Shape* const> shapes) : side_(side) {
  std::uint64_t most_rows = 0, most_parts = 0, most_errors = 0;
  for (const Shape* shape : shapes) {
    for (const OutputSpec& output : shape->outputs) {
      for (const Check& check : output.checks) {
        if (!needs_sums(check.kind)) continue;
        const std::uint64_t size = row_size(output, check), parts = parts_per_row(size);
        const std::uint64_t rows = elements(output) / size;
        most_rows = std::max(most_rows, rows);
        if (check.kind == CheckKind::versus_baseline) most_errors = std::max(most_errors, rows);
        if (parts > 1) most_parts = std::max(most_parts, rows * parts);
      }
    }
  }
  reports_ = make_buffer(side, kMaxReports * sizeof(Reports), Access::read_write);
  if (most_rows > 0) sums_ = make_buffer(side, most_rows * sizeof(RowSums), Access::read_write);
  if (most_errors > 0)
    errors_ = make_buffer(side, most_errors * sizeof(double), Access::read_write);
  if (most_parts > 0) parts_ = make_buffer(side, most_parts * sizeof(RowSums), Access::read_write);
}

// In the order of outputs; checks of the same rows stand together and share the sums.
std::vector<DeviceChecks::Running> DeviceChecks::plan(const Shape& shape, ArmName arm,
                                                      std::span<const Place> places) const {
  KJ_CHECK(places.size() == shape.outputs.size());
  std::vector<Running> running;
  for (std::size_t o = 0; o < shape.outputs.size(); ++o) {
    const OutputSpec& output = shape.outputs[o];
    std::vector<const Check*> checks;
    for (const Check& check : output.checks) {
      if (check.kind != CheckKind::custom) checks.push_back(&check);  // custom_checks.h
    }
    const auto rows_of = [&](const Check* check) {
      return needs_sums(check->kind) ? row_size(output, *check) : 0;
    };
    std::stable_sort(checks.begin(), checks.end(),
                     [&](const Check* a, const Check* b) { return rows_of(a) < rows_of(b); });
    std::uint64_t summed = 0;
    for (const Check* check : checks) {
      KJ_CHECK(running.size() < kMaxReports);
      const std::uint64_t report = reports_.mapping.address() + running.size() * sizeof(Reports);
      Running one{&output,
                  o,
                  check,
                  places[o],
                  compare_params(output, *check),
                  judge_rows_params(output, *check)};
      one.compare.out = places[o].out;
      one.compare.expected = places[o].expected;
      one.compare.count = elements(output);
      one.compare.poison_key = places[o].poison_key;
      one.compare.report = report + offsetof(Reports, elements);
      one.compare.sums = sums_.mapping.address();
      one.rows.sums = sums_.mapping.address();
      one.rows.rows = elements(output) / one.rows.row_size;
      one.rows.report = report + offsetof(Reports, rows);
      if (check->kind == CheckKind::versus_baseline && arm == ArmName::baseline) {
        one.rows.limit = std::numeric_limits<double>::max();
        one.rows.errors = errors_.mapping.address();
      } else if (check->kind == CheckKind::versus_baseline) {
        KJ_CHECK(baseline_errors_.contains(o));
        one.rows.limit = versus_baseline_limit(*check, baseline_errors_.at(o));
      }
      one.sums_first = rows_of(check) != summed;
      summed = rows_of(check);
      running.push_back(one);
    }
  }
  return running;
}

void DeviceChecks::launch(const Running& running) {
  if (running.sums_first) sum(*running.output, running.place, running.rows.row_size);
  if (!measures_rows(running.check->kind)) {
    side_.kernels.compare(side_.stream.get(), running.compare);
    return;
  }
  side_.kernels.judge_rows(side_.stream.get(), running.rows);
  if (running.rows.errors == 0) return;
  std::vector<double> errors(running.rows.rows);
  side_.stream.synchronize();
  KJ_DRIVER(side_.driver,
            cuMemcpyDtoH(errors.data(), running.rows.errors, errors.size() * sizeof(double)));
  baseline_errors_[running.output_index] = baseline_error(std::move(errors));
}

std::optional<DeviceChecks::Failure> DeviceChecks::check(const Shape& shape, ArmName arm,
                                                         std::span<const Place> places) {
  const std::vector<Running> running = plan(shape, arm, places);
  std::vector<Reports> reports(running.size(), {kNothingCompared, {0, kNone, 0, 0, 0}});
  const std::size_t bytes = reports.size() * sizeof(Reports);
  const std::uint64_t at = reports_.mapping.address();
  side_.stream.upload(at, reports.data(), bytes);
  for (const Running& one : running) launch(one);
  side_.stream.synchronize();
  KJ_DRIVER(side_.driver, cuMemcpyDtoH(reports.data(), at, bytes));

  for (std::size_t i = 0; i < running.size(); ++i) {
    const Running& one = running[i];
    const OutputSpec& output = *one.output;
    const bool rows = measures_rows(one.check->kind);
    const bool all_zero =
        (rows ? reports[i].rows.any_nonzero : reports[i].elements.any_nonzero) == 0;
    if (only_zeros(shape, output, all_zero)) {
      throw Error(Fault::package,
                  cat("reference.py: shape ", shape.name, ": output ", output.tensor.name,
                      ": every expected value is 0, so zeros would be right; give it inputs with "
                      "other answers, or make it a test"));
    }
    auto failure = rows ? judge_rows(output, *one.check, one.rows, reports[i].rows)
                        : judge(output, *one.check, reports[i].elements, elements(output));
    if (failure && failure->rows && one.check->kind == CheckKind::versus_baseline) {
      failure->rows->baseline = baseline_errors_.at(one.output_index);
    }
    if (failure) return explain(one, std::move(*failure));
  }
  return std::nullopt;
}

bool DeviceChecks::only_zeros(const Shape& shape, const OutputSpec& output, bool all_zero) {
  if (!shape.timed || !is_floating(output.tensor.dtype)) return false;
  if (elements(output) >= kManyElements) return all_zero;
  Zeros& zeros = zeros_[&output];
  if (!all_zero) zeros = {};
  if (!all_zero || zeros.last == inputs_) return false;  // both arms have the same inputs
  zeros.last = inputs_;
  return ++zeros.inputs >= kManyInputs;
}

void DeviceChecks::sum(const OutputSpec& output, const Place& place, std::uint64_t size) {
  SumParams params = sum_params(output);
  params.out = place.out;
  params.expected = place.expected;
  params.parts = parts_.mapping.address();
  params.count = elements(output);
  params.row_size = size;
  side_.kernels.sum_rows(side_.stream.get(), params, sums_.mapping.address());
}

// The rest is for a person who reads it: the kernels run again, with other questions.
DeviceChecks::Failure DeviceChecks::explain(const Running& running, CheckFailure failure) {
  const OutputSpec& output = *running.output;
  if (failure.rows) {
    CompareParams all = running.compare;
    all.kind = compare_exact;
    kjudge::explain(output, compare(all), worst_element(running, *failure.rows), failure);
  }
  failure.out = element(output.tensor.dtype, running.place.out, failure.first_index);
  failure.expected = round_to(
      output.tensor.dtype,
      element(output.expected_dtype, running.place.expected, failure.first_index), output.overflow);
  std::string message = describe(failure, *running.check);
  return {std::move(failure), std::move(message)};
}

CompareReport DeviceChecks::compare(CompareParams params) {
  CompareReport report = kNothingCompared;
  params.report = reports_.mapping.address();
  side_.stream.upload(params.report, &report, sizeof report);
  side_.kernels.compare(side_.stream.get(), params);
  side_.stream.synchronize();
  KJ_DRIVER(side_.driver, cuMemcpyDtoH(&report, params.report, sizeof report));
  return report;
}

// Of the first failed row: a stray NaN or infinity, else the first with the largest error.
std::uint64_t DeviceChecks::worst_element(const Running& running, const RowFailure& rows) {
  CompareParams row = running.compare;
  row.kind = compare_close;
  row.first = rows.first * running.rows.row_size;
  row.count = running.rows.row_size;
  row.rtol = 0;
  row.atol = std::numeric_limits<double>::max();
  CompareReport report = compare(row);
  if (report.first_index == kNone) {
    row.atol = std::nextafter(std::bit_cast<double>(report.worst_abs_bits), 0);
    report = compare(row);
  }
  return report.first_index == kNone ? row.first : report.first_index;
}

double DeviceChecks::element(DType dtype, std::uint64_t address, std::uint64_t index) {
  const auto width = static_cast<std::uint64_t>(bits(dtype));
  std::array<std::byte, 8> bytes{};
  const std::uint64_t size = std::max<std::uint64_t>(width / 8, 1);
  KJ_DRIVER(side_.driver, cuMemcpyDtoH(bytes.data(), address + index * width / 8, size));
  return element_value(dtype, std::span(bytes).first(size), width < 8 ? index % (8 / width) : 0);
}

bool compares_arms(const Shape& shape) {
  for (const OutputSpec& output : shape.outputs) {
    for (const Check& check : output.checks) {
      if (check.kind == CheckKind::versus_baseline) return true;
    }
  }
  return false;
}

}  // namespace kjudge
