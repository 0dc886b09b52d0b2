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
  void new_inputs() {
    baseline_errors_.clear();
    ++inputs_;
  }

  // The first check that fails, by output. Where versus_baseline is one, the baseline's outputs of
  // the same inputs come first; they are held to all but its limit. Fault::package where a timed
  // shape expects nothing but zeros: then zeros would pass. Chance makes few elements all 0 now and
  // then; of those it takes many inputs in succession.
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

  // Inputs in succession whose answer was all zeros, and the number of the last of them.
  struct Zeros {
    std::uint64_t last = 0;
    int inputs = 0;
  };

  bool only_zeros(const Shape& shape, const OutputSpec& output, bool all_zero);
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
  std::map<const OutputSpec*, Zeros> zeros_;       // of those of few elements
  std::uint64_t inputs_ = 0;                       // how often there were new ones
};

// Whether the submission is compared with the baseline, too.
bool compares_arms(const Shape& shape);

}  // namespace kjudge
