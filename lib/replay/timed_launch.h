// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "driver/kernel_module.h"
#include "replay/handles.h"

namespace kjudge {

// One timed launch of a graph: block, stamp, event, launch, event, stamp, all queued; then unblock
// and wait. Stamps and events lie in slots drawn anew each time, among decoys: a kernel that writes
// where the judge's stamps lay the last time is seen, not believed.
class TimedLaunch {
 public:
  TimedLaunch(const Driver& driver, const KernelModule& kernels, CUstream stream,
              std::uint64_t block_timeout_ns);
  ~TimedLaunch();  // unblocks

  // The device waits at the block kernel when this returns.
  void queue(CUgraphExec exec, std::uint64_t seed);
  // From unblock to stream synchronized. Throws DriverError for what the kernels did.
  double run();

  // Of the last run().
  double event_ns() const;
  double stamp_ns() const;
  bool gave_up() const;    // the release came after the block's time-out
  bool disturbed() const;  // something else wrote where stamps and the block's flag lie

  // The largest step that all differences of stamps are a multiple of.
  double clock_tick_ns();

  // Never written; for kernels that need an address to keep their loads alive.
  std::uint64_t sink() const;

  // What a kernel that knew them would write to.
  std::uint64_t flag_address() const { return flag_.address(); }
  std::uint64_t stamp_address(std::size_t slot) const;

 private:
  bool waited_too_long() const;
  std::uint64_t decoy(std::size_t slot) const;

  const Driver& driver_;
  const KernelModule& kernels_;
  CUstream stream_;
  std::uint64_t block_timeout_ns_;
  PinnedMemory flag_, stamps_, sink_;
  std::vector<Event> events_;
  std::chrono::steady_clock::time_point queued_;
  std::chrono::nanoseconds waited_{0};
  std::uint64_t decoys_ = 0;
  std::size_t stamp_before_ = 0, stamp_after_ = 1, event_before_ = 0, event_after_ = 1;
};

}  // namespace kjudge
