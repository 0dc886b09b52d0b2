// SPDX-License-Identifier: Apache-2.0
#include "judge/device_meter.h"

#include <algorithm>

#include "replay/supervisor_device.h"
#include "stats.h"

namespace kjudge {
namespace {

constexpr int kTries = 5;
constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastCopy = 4096;
constexpr std::uint64_t kBlockTimeoutNs = 1'000'000'000;

// Room for a copy of a millisecond on any GPU, or for as much as there is.
std::uint64_t buffer_bytes(const DeviceSide& side) {
  if (side.driver.kind == DriverKind::host) return kGigabyte / 8;
  std::size_t free = 0, total = 0;
  KJ_DRIVER(side.driver, cuMemGetInfo(&free, &total));
  return std::min<std::uint64_t>(4 * kGigabyte, free / 4);
}

}  // namespace

DeviceMeter::DeviceMeter(const Driver& driver, int device, std::function<void()> tick)
    : side_(driver, device, 0),
      tick_(std::move(tick)),
      kernels_(driver),
      launch_(driver, side_.kernels, side_.stream.get(), kBlockTimeoutNs),
      eviction_(make_buffer(side_, eviction_bytes(side_), Access::read_write)),
      from_(make_buffer(side_, buffer_bytes(side_), Access::read_write)),
      to_(make_buffer(side_, from_.memory.size(), Access::read_write)) {
  // Written once, so that on the host driver their pages are memory and not one page of zeros.
  for (const DeviceBuffer* buffer : {&eviction_, &from_, &to_}) {
    KJ_DRIVER(driver, cuMemsetD8Async(buffer->mapping.address(), 0x5a, buffer->memory.size(),
                                      side_.stream.get()));
  }
  side_.stream.synchronize();
  empty_ns_ = best([&](CUstream stream) {
    StampParams unused{};
    void* arguments[] = {&unused};
    KJ_DRIVER(driver, cuLaunchKernel(side_.kernels.empty(), 1, 1, 1, 1, 1, 1, 0, stream, arguments,
                                     nullptr));
  });
  // Much more than caches hold, and little enough for a few tries in a second.
  const std::uint64_t bytes = std::min(kGigabyte, from_.memory.size());
  const std::uint64_t from = from_.mapping.address();
  const auto rate = [&](double moved, const Queue& queue) {
    return moved / std::max(best(queue) - empty_ns_, 1.0) * 1e9;
  };
  rates_.read_bytes_per_s = rate(static_cast<double>(bytes), [&](CUstream stream) {
    kernels_.read(stream, {from, bytes, launch_.sink()});
  });
  rates_.copied_bytes_per_s = rate(2 * static_cast<double>(bytes), [&](CUstream stream) {
    kernels_.copy(stream, {to_.mapping.address(), from, bytes});
  });
  rates_.operations_per_s = {{"float32", operations_per_s(MeasuringModule::Width::float32)},
                             {"float64", operations_per_s(MeasuringModule::Width::float64)}};
}

// From cold caches, as the judge times.
double DeviceMeter::once(CUgraphExec exec) {
  side_.kernels.evict(side_.stream.get(), EvictParams{eviction_.mapping.address(),
                                                      eviction_.memory.size(), launch_.sink()});
  launch_.queue(exec, 1);
  launch_.run();
  return launch_.event_ns();
}

std::vector<double> DeviceMeter::times(int count, const Queue& queue) {
  const Driver& driver = side_.driver;
  KJ_DRIVER(driver, cuStreamBeginCapture(side_.stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  queue(side_.stream.get());
  CUgraph graph = nullptr;
  KJ_DRIVER(driver, cuStreamEndCapture(side_.stream.get(), &graph));
  CUgraphExec exec = nullptr;
  const CUresult made = driver.cuGraphInstantiateWithFlags(&exec, graph, 0);
  driver.cuGraphDestroy(graph);
  check_driver(driver, made, "cuGraphInstantiateWithFlags");
  const GraphExec owned(driver, exec);
  std::vector<double> taken;
  once(exec);  // pages, graph and code are touched
  for (int i = 0; i < count; ++i) {
    tick_();
    taken.push_back(once(exec));
  }
  return taken;
}

double DeviceMeter::best(const Queue& queue) {
  const std::vector<double> taken = times(kTries, queue);
  return *std::min_element(taken.begin(), taken.end());
}

double DeviceMeter::operations_per_s(MeasuringModule::Width width) {
  constexpr double kLongEnoughNs = 2e6;  // for the clock to come up, and a launch to be nothing
  for (std::uint64_t iterations = 1024;; iterations *= 4) {
    double operations = 0;
    const double ns = best([&](CUstream stream) {
      operations =
          kernels_.multiply_add(stream, width, MultiplyAddParams{iterations, launch_.sink(), -1});
    });
    if (ns >= kLongEnoughNs || iterations >= std::uint64_t{1} << 40) return operations / ns * 1e9;
  }
}

double DeviceMeter::copy_time(std::uint64_t bytes) {
  return median(times(kTries, [&](CUstream stream) {
    kernels_.copy(stream, {to_.mapping.address(), from_.mapping.address(), bytes});
  }));
}

std::uint64_t DeviceMeter::copy_bytes(double wanted_ns) {
  constexpr int kCorrections = 4;
  constexpr double kCloseEnough = 0.05;
  const double most = static_cast<double>(from_.memory.size());
  double bytes = std::max(wanted_ns - empty_ns_, 0.0) * rates_.copied_bytes_per_s / 2 * 1e-9;
  std::uint64_t whole = 0;
  for (int i = 0;; ++i) {
    whole = static_cast<std::uint64_t>(std::clamp(bytes, double{kLeastCopy}, most)) / 16 * 16;
    if (i == kCorrections) return whole;
    const double ns = copy_time(whole);
    if (std::abs(ns / wanted_ns - 1) <= kCloseEnough) return whole;
    const double factor = (wanted_ns - empty_ns_) / std::max(ns - empty_ns_, 1.0);
    bytes = static_cast<double>(whole) * std::clamp(factor, 0.2, 5.0);
  }
}

}  // namespace kjudge
