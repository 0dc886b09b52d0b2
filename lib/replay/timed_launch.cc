// SPDX-License-Identifier: Apache-2.0
#include "replay/timed_launch.h"

#include <atomic>
#include <chrono>
#include <numeric>

#include "replay/draw.h"

namespace kjudge {
namespace {

constexpr std::size_t kStampSlots = 512;  // one page
constexpr std::size_t kEventSlots = 16;
enum Flag : std::uint32_t { flag_wait = 0, flag_go = 1, flag_gave_up = 2 };

std::atomic_ref<std::uint32_t> flag_of(const PinnedMemory& memory) {
  return std::atomic_ref<std::uint32_t>(*memory.as<std::uint32_t>());
}

}  // namespace

TimedLaunch::TimedLaunch(const Driver& driver, const KernelModule& kernels, CUstream stream,
                         std::uint64_t block_timeout_ns)
    : driver_(driver),
      kernels_(kernels),
      stream_(stream),
      block_timeout_ns_(block_timeout_ns),
      flag_(driver, 4096),
      stamps_(driver, kStampSlots * sizeof(std::uint64_t)),
      sink_(driver, 4096) {
  for (std::size_t i = 0; i < kEventSlots; ++i) events_.emplace_back(driver);
  flag_of(flag_) = flag_go;
}

// Without this, whatever waits for the device on the way out waits for the block's time-out.
TimedLaunch::~TimedLaunch() { flag_of(flag_) = flag_go; }

std::uint64_t TimedLaunch::stamp_address(std::size_t slot) const {
  return stamps_.address() + slot * sizeof(std::uint64_t);
}

std::uint64_t TimedLaunch::decoy(std::size_t slot) const { return Draw(decoys_ + slot).next(); }

std::uint64_t TimedLaunch::sink() const { return sink_.address(); }

void TimedLaunch::queue(CUgraphExec exec, std::uint64_t seed) {
  Draw draw(seed);
  stamp_before_ = draw.below(kStampSlots);
  stamp_after_ = (stamp_before_ + 1 + draw.below(kStampSlots - 1)) % kStampSlots;
  event_before_ = draw.below(kEventSlots);
  event_after_ = (event_before_ + 1 + draw.below(kEventSlots - 1)) % kEventSlots;
  decoys_ = draw.next();
  for (std::size_t i = 0; i < kStampSlots; ++i) stamps_.as<std::uint64_t>()[i] = decoy(i);

  flag_of(flag_) = flag_wait;
  queued_ = std::chrono::steady_clock::now();
  BlockParams block{};
  block.flag = flag_.address();
  block.timeout_ns = block_timeout_ns_;
  block.go = flag_go;
  block.gave_up = flag_gave_up;
  kernels_.block(stream_, block);
  kernels_.stamp(stream_, StampParams{stamp_address(stamp_before_)});
  KJ_DRIVER(driver_, cuEventRecord(events_[event_before_].get(), stream_));
  KJ_DRIVER(driver_, cuGraphLaunch(exec, stream_));
  KJ_DRIVER(driver_, cuEventRecord(events_[event_after_].get(), stream_));
  kernels_.stamp(stream_, StampParams{stamp_address(stamp_after_)});
}

double TimedLaunch::run() {
  const auto start = std::chrono::steady_clock::now();
  waited_ = start - queued_;
  std::uint32_t waiting = flag_wait;
  flag_of(flag_).compare_exchange_strong(waiting, flag_go);
  KJ_DRIVER(driver_, cuStreamSynchronize(stream_));
  const auto stop = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(stop - start).count();
}

double TimedLaunch::event_ns() const {
  float milliseconds = 0;
  KJ_DRIVER(driver_, cuEventElapsedTime(&milliseconds, events_[event_before_].get(),
                                        events_[event_after_].get()));
  return static_cast<double>(milliseconds) * 1e6;
}

double TimedLaunch::stamp_ns() const {
  const auto* stamps = stamps_.as<const std::uint64_t>();
  return static_cast<double>(
      static_cast<std::int64_t>(stamps[stamp_after_] - stamps[stamp_before_]));
}

// With room for a device whose clock runs faster than the host's.
bool TimedLaunch::waited_too_long() const {
  return static_cast<double>(waited_.count()) >= 0.9 * static_cast<double>(block_timeout_ns_);
}

// The flag alone is not believed: a kernel that wrote it would have its slow replays taken again.
bool TimedLaunch::gave_up() const { return flag_of(flag_) == flag_gave_up && waited_too_long(); }

bool TimedLaunch::disturbed() const {
  if (flag_of(flag_) != flag_go && !gave_up()) return true;
  const auto* stamps = stamps_.as<const std::uint64_t>();
  for (std::size_t i = 0; i < kStampSlots; ++i) {
    if (i != stamp_before_ && i != stamp_after_ && stamps[i] != decoy(i)) return true;
  }
  return false;
}

double TimedLaunch::clock_tick_ns() {
  constexpr int kStamps = 50;
  std::uint64_t step = 0, first = 0;
  for (int i = 0; i < kStamps; ++i) {
    kernels_.stamp(stream_, StampParams{stamp_address(0)});
    KJ_DRIVER(driver_, cuStreamSynchronize(stream_));
    const std::uint64_t now = stamps_.as<const std::uint64_t>()[0];
    if (i == 0) first = now;
    step = std::gcd(step, now - first);
  }
  return static_cast<double>(step);
}

}  // namespace kjudge
