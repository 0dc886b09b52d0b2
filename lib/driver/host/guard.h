// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include "driver/host/api.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kjudge {

// Running code that may fault or never end.
//
// A thread that runs kernels has a KernelThread: an alternate signal stack, and a place to jump to.
// The handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGABRT jump there when the thread
// is inside run_guarded, and go on to whoever had the signal before when it is not: host code keeps
// its own handlers, and its own crashes. A context's sticky error is also the flag that stops what
// it runs: stop_threads sends kStopSignal to the threads inside, and each leaves by the same jump.

// Where a module's own instructions are. By default everywhere.
struct CodeRange {
  std::uintptr_t begin = 0, end = ~std::uintptr_t{0};
};

class KernelThread {
 public:
  KernelThread();  // for the calling thread, until destroyed by it
  ~KernelThread();
  KernelThread(const KernelThread&) = delete;
  KernelThread& operator=(const KernelThread&) = delete;

  static KernelThread* current();
  // At least `bytes` of scratch, 64-byte aligned; its contents stay until the next call.
  void* scratch(std::size_t bytes);

 private:
  friend CUresult run_guarded(std::atomic<CUresult>&, void (*)(void*), void*, CodeRange);
  friend void stop_threads(const std::atomic<CUresult>&);
  friend struct FaultHandlers;

  pthread_t thread_;
  std::atomic<const std::atomic<CUresult>*> stop_{nullptr};
  volatile sig_atomic_t armed_ = 0;
  volatile sig_atomic_t stepping_ = 0;
  volatile int fault_ = 0;
  std::atomic<bool> leave_anywhere_{false};
  CodeRange code_;
  sigjmp_buf jump_;
  std::unique_ptr<std::byte[]> signal_stack_;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
};

// Calls body(argument) on a KernelThread. Returns CUDA_SUCCESS when it came back, the error of its
// fault, or `stop` when that was or became an error. Destructors inside body do not run when it is
// left by a jump.
CUresult run_guarded(std::atomic<CUresult>& stop, void (*body)(void*), void* argument,
                     CodeRange code = {});

// Makes every run_guarded under `stop` return, once `stop` is an error, and waits for it, two
// seconds at most.
void stop_threads(const std::atomic<CUresult>& stop);

// Takes the fault signals, again if someone replaced our handlers since. A system call for each
// signal, so not for every launch.
void install_fault_handlers();
// The same for every launch, looking at SIGSEGV alone: those who take fault signals (Python's
// faulthandler, sanitizers, test frameworks) take that one too.
void check_fault_handlers();

// Blocks every signal but the fault and stop signals in the calling thread, so that the process's
// own signals go to its own threads.
void block_other_signals();

}  // namespace kjudge
