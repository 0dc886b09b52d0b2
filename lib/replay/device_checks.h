// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "check/check.h"
#include "replay/device_side.h"
#include "replay/evaluation.h"

namespace kjudge {

// The checks of a shape's outputs, on the device. Rows are summed once for all checks that measure
// the same ones, and nothing but reports comes to the host unless a check fails.
class DeviceChecks {
 public:
  // Memory for the largest of the shapes. `side` and the shapes must outlive this.
  DeviceChecks(DeviceSide& side, std::span<const Shape* const> shapes);

  // Where an output lies in device memory.
  struct Place {
    std::uint64_t out = 0, expected = 0;
    std::uint64_t poison_key = 0;  // of what `out` held before the replay
  };
  struct Failure {
    CheckFailure facts;
    std::string message;
  };
  // What the baseline did on other inputs counts no more.
  void new_inputs() { baseline_errors_.clear(); }

  // The first check that fails, by output. Where versus_baseline is one, the baseline's outputs of
  // the same inputs come first; they are held to all but its limit. Fault::package where a timed
  // shape expects nothing but zeros: then zeros would pass.
  std::optional<Failure> check(const Shape& shape, ArmName arm, std::span<const Place> places);

 private:
  struct Reports {
    CompareReport elements;
    RowReport rows;
  };
  // A check on its way through the device.
  struct Running {
    const OutputSpec* output;
    std::size_t output_index;
    const Check* check;
    Place place;
    CompareParams compare;
    JudgeRowsParams rows;
    bool sums_first = false;  // the rows are not those of the check before
  };

  std::vector<Running> plan(const Shape& shape, ArmName arm, std::span<const Place> places) const;
  void launch(const Running& running);
  void sum(const OutputSpec& output, const Place& place, std::uint64_t row_size);
  Failure explain(const Running& running, CheckFailure failure);
  CompareReport compare(CompareParams params);
  std::uint64_t worst_element(const Running& running, const RowFailure& rows);
  double element(DType dtype, std::uint64_t address, std::uint64_t index);

  DeviceSide& side_;
  DeviceBuffer reports_, sums_, parts_, errors_;
  std::map<std::size_t, double> baseline_errors_;  // by output, of the inputs as they are
};

// Whether the submission is compared with the baseline, too.
bool compares_arms(const Shape& shape);

}  // namespace kjudge
