// SPDX-License-Identifier: Apache-2.0
#include "driver/host/pool.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "driver/host/guard.h"

namespace kjudge {
namespace {

// A job while it runs. Lives on the stack of the thread that called run_job.
struct Running {
  const Job& job;
  std::atomic<CUresult>& stop;
  std::uint64_t step;
  std::atomic<bool>* open;  // the slot's: whether helpers should come
  std::atomic<std::uint64_t> next{0};
};

void take_indices(void* argument) {
  Running& running = *static_cast<Running*>(argument);
  const Job& job = running.job;
  for (;;) {
    const std::uint64_t begin = running.next.fetch_add(running.step, std::memory_order_relaxed);
    if (begin >= job.count) return;
    const std::uint64_t end = std::min(job.count, begin + running.step);
    if (end == job.count && running.open != nullptr) running.open->store(false);
    for (std::uint64_t index = begin; index < end; ++index) {
      if (running.stop.load(std::memory_order_relaxed) != CUDA_SUCCESS) return;
      job.run(job.context, index);
    }
  }
}

void work_on(Running& running) {
  if (const std::size_t bytes = running.job.scratch_bytes; bytes > 0) {
    try {
      // Here, since nothing may be allocated where a jump can end it.
      std::memset(KernelThread::current()->scratch(bytes), 0, bytes);
    } catch (const std::bad_alloc&) {
      stop_with(running.stop, CUDA_ERROR_OUT_OF_MEMORY);
      return;
    }
  }
  const CUresult result = run_guarded(running.stop, take_indices, &running, running.job.code);
  if (result != CUDA_SUCCESS) stop_with(running.stop, result);
}

// Threads that wait for jobs, one less than there are cores: the caller is the other.
class Pool {
 public:
  static Pool& get() {
    static Pool& pool = *new Pool;
    return pool;
  }

  void run(const Job& job, std::atomic<CUresult>& stop, std::uint64_t step) {
    Slot* slot = claim();
    Running running{job, stop, step, slot == nullptr ? nullptr : &slot->open};
    if (slot == nullptr) {
      work_on(running);
      return;
    }
    slot->job.store(&running);
    slot->open.store(true);
    published_.notify();
    work_on(running);
    slot->open.store(false);
    slot->job.store(nullptr);
    // A helper raises `users` before it reads `job`: with none left, nobody holds the pointer.
    slot->left.wait([&] { return slot->users.load() == 0; });
    slot->claimed.store(false);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<bool> claimed{false};
    std::atomic<bool> open{false};
    std::atomic<Running*> job{nullptr};
    std::atomic<int> users{0};
    Signal left;
  };

  Pool() {
    for (unsigned i = 1; i < core_count(); ++i) {
      std::thread([this] { help(); }).detach();
    }
  }

  Slot* claim() {
    for (Slot& slot : slots_) {
      bool claimed = false;
      if (slot.claimed.compare_exchange_strong(claimed, true)) return &slot;
    }
    return nullptr;
  }

  bool anything_to_do() const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return slot.open.load(); });
  }

  void help() {
    block_other_signals();
    const KernelThread self;
    for (;;) {
      published_.wait([&] { return anything_to_do(); });
      for (Slot& slot : slots_) {
        if (!slot.open.load()) continue;
        slot.users.fetch_add(1);
        if (Running* running = slot.job.load(); running != nullptr) work_on(*running);
        if (slot.users.fetch_sub(1) == 1) slot.left.notify();
      }
    }
  }

  std::array<Slot, 16> slots_;
  Signal published_;
};

}  // namespace

void pause_and_yield(unsigned turn) {
  // Yields now and then, so that a spinning thread costs nothing where cores are few.
  if (turn % 16 == 15) {
    sched_yield();
  } else {
    _mm_pause();
  }
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

unsigned core_count() {
  static const unsigned count = [] {
    // The mask's size is the machine's, which may be above the 1024 of cpu_set_t.
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
      cpu_set_t* set = CPU_ALLOC(cpus);
      const std::size_t size = CPU_ALLOC_SIZE(cpus);
      const bool known = set != nullptr && sched_getaffinity(0, size, set) == 0;
      const int allowed = known ? CPU_COUNT_S(size, set) : 0;
      CPU_FREE(set);
      if (known) return static_cast<unsigned>(std::max(allowed, 1));
    }
    return std::max(std::thread::hardware_concurrency(), 1u);
  }();
  return count;
}

CUresult run_job(const Job& job, std::atomic<CUresult>& stop) {
  if (job.count > 1 && core_count() > 1) {
    const std::uint64_t step = std::clamp<std::uint64_t>(job.count / (core_count() * 32), 1, 64);
    Pool::get().run(job, stop, step);
  } else if (job.count > 0) {
    Running running{job, stop, job.count, nullptr};
    work_on(running);
  }
  return stop.load();
}

void stop_with(std::atomic<CUresult>& stop, CUresult result) {
  CUresult none = CUDA_SUCCESS;
  if (stop.compare_exchange_strong(none, result)) stop_threads(stop);
}

}  // namespace kjudge
