// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "driver/host/guard.h"

namespace kjudge {

// How long a waiting thread spins before it sleeps. Waking a sleeper costs 5 to 50 us, so a queue
// that is fed more often than this answers in about one: a launch of one block and a wait for it
// took 2.7 us, of a thousand blocks 9.6 us, on two cores of a virtual machine.
inline constexpr std::chrono::nanoseconds kSpinTime = std::chrono::microseconds(50);

void pause_and_yield(unsigned turn);
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value);
void wake_all(std::atomic<std::uint32_t>& word);

// "Something changed": waiters look at their own condition again. The condition must be atomic, or
// take its own lock.
class Signal {
 public:
  void notify() {
    epoch_.fetch_add(1);
    if (sleepers_.load() > 0) wake_all(epoch_);
  }

  template <class Condition>
  void wait(Condition&& holds) {
    const auto spin_until = std::chrono::steady_clock::now() + kSpinTime;
    for (unsigned turn = 0; std::chrono::steady_clock::now() < spin_until; ++turn) {
      if (holds()) return;
      pause_and_yield(turn);
    }
    sleepers_.fetch_add(1);
    for (;;) {
      const std::uint32_t seen = epoch_.load();
      if (holds()) break;
      sleep_on(epoch_, seen);
    }
    sleepers_.fetch_sub(1);
  }

 private:
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
};

// Cores that this process may run on; at least 1.
unsigned core_count();

// run(context, i) for every i below count, on the calling thread, which must be a KernelThread, and
// on every idle core, handed out in order in steps of a few. Returns CUDA_SUCCESS, or the first
// error: a fault is put in `stop`, which ends all that runs under it.
struct Job {
  void (*run)(const void* context, std::uint64_t index) = nullptr;
  const void* context = nullptr;
  std::uint64_t count = 0;
  CodeRange code;                 // of `run`, where it is a module's
  std::size_t scratch_bytes = 0;  // of KernelThread::scratch, zero when a thread starts on the job
};
CUresult run_job(const Job& job, std::atomic<CUresult>& stop);

// Makes `result` the sticky error of everything that runs under `stop`, unless there is one.
void stop_with(std::atomic<CUresult>& stop, CUresult result);

}  // namespace kjudge
