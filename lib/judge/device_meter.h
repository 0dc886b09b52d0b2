// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "driver/measuring_module.h"
#include "replay/device_side.h"
#include "replay/timed_launch.h"

namespace kjudge {

// What a device did at most. Of several tries the best counts: a floor made of it is a time that no
// kernel is known to beat.
struct MeasuredRates {
  double read_bytes_per_s = 0;
  double copied_bytes_per_s = 0;  // read and written together
  // By dtype, a multiply-add being two; of plain arithmetic, not of matrix units.
  std::vector<std::pair<std::string, double>> operations_per_s;
};

// Times kernels of kjudge's own on one device, in this process. Nobody else may use it meanwhile.
class DeviceMeter {
 public:
  // `tick` is called between launches and may throw.
  DeviceMeter(const Driver& driver, int device, std::function<void()> tick);

  const MeasuredRates& rates() const { return rates_; }

  // What a copy moves from cold caches in about `wanted_ns`, as MeasuringModule launches it: a
  // multiple of 16, and the least or most there is where no copy takes that time.
  std::uint64_t copy_bytes(double wanted_ns);
  MeasuringModule::Launch launch_for(std::uint64_t bytes) const {
    return kernels_.launch_for(bytes);
  }

 private:
  using Queue = std::function<void(CUstream)>;
  double once(CUgraphExec exec);
  std::vector<double> times(int count, const Queue& queue);
  double best(const Queue& queue);
  double operations_per_s(MeasuringModule::Width width);
  double copy_time(std::uint64_t bytes);

  DeviceSide side_;
  std::function<void()> tick_;
  MeasuringModule kernels_;
  TimedLaunch launch_;
  DeviceBuffer eviction_, from_, to_;
  double empty_ns_ = 0;  // of a graph that does nothing
  MeasuredRates rates_;
};

}  // namespace kjudge
