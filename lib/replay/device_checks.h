// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "check/check.h"
#include "replay/device_side.h"

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
  // The first check that fails, by output. Fault::package where a timed shape expects nothing but
  // zeros: then zeros would pass.
  std::optional<Failure> check(const Shape& shape, std::span<const Place> places);

 private:
  struct Reports {
    CompareReport elements;
    RowReport rows;
  };
  // A check on its way through the device.
  struct Running {
    const OutputSpec* output;
    const Check* check;
    Place place;
    CompareParams compare;
    JudgeRowsParams rows;
    bool sums_first = false;  // the rows are not those of the check before
  };

  std::vector<Running> plan(const Shape& shape, std::span<const Place> places) const;
  void sum(const OutputSpec& output, const Place& place, std::uint64_t row_size);
  Failure explain(const Running& running, CheckFailure failure);
  CompareReport compare(CompareParams params);
  std::uint64_t worst_element(const Running& running, const RowFailure& rows);
  double element(DType dtype, std::uint64_t address, std::uint64_t index);

  DeviceSide& side_;
  DeviceBuffer reports_, sums_, parts_;
};

}  // namespace kjudge
