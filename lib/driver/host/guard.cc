// SPDX-License-Identifier: Apache-2.0
#include "driver/host/guard.h"

#include <fenv.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/host/entry.h"

namespace kjudge {
namespace {

constexpr int kFaultSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
constexpr std::size_t kSignalStackBytes = 64 * 1024;

// A real-time signal that neither glibc (32, 33) nor the usual programs use.
int stop_signal() { return SIGRTMIN + 13; }

// initial-exec: a handler must not allocate, as a first use of dynamic thread-local storage may.
__attribute__((tls_model("initial-exec"))) thread_local KernelThread* current_thread = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local volatile sig_atomic_t passing_on = 0;

struct Threads {
  std::mutex mutex;
  std::vector<KernelThread*> list;
};
Threads& threads() {
  static auto& all = *new Threads;
  return all;
}

struct sigaction previous_actions[64];

CUresult error_of(int signal) {
  switch (signal) {
    case SIGFPE:
      return CUDA_ERROR_LAUNCH_FAILED;
    case SIGILL:
    case SIGTRAP:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case SIGABRT:
      return CUDA_ERROR_ASSERT;
    default:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
}

// The trap flag: a trap after each instruction.
constexpr greg_t kTrapFlag = 0x100;

greg_t& flags_of(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
}

}  // namespace

struct FaultHandlers {
  [[noreturn]] static void leave(KernelThread& self, int error) {
    self.armed_ = 0;
    self.stepping_ = 0;
    self.fault_ = error;
    // Which the kernel blocked for this handler; the jump restores no mask.
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, stop_signal());
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    siglongjmp(self.jump_, 1);
  }

  static void on_fault(int signal, siginfo_t* info, void* context) {
    KernelThread* self = current_thread;
    if (self != nullptr && self->stepping_ && signal == SIGTRAP && info->si_code == TRAP_TRACE) {
      leave_or_step(*self, context);
      return;
    }
    if (self != nullptr && self->armed_) leave(*self, error_of(signal));
    pass_on(signal, info, context);
  }

  static void on_stop(int, siginfo_t*, void* context) {
    if (KernelThread* self = current_thread; self != nullptr) leave_or_step(*self, context);
  }

  // Out of the module's own instructions the thread leaves at once; out of a function that they
  // called it goes on, instruction by instruction, until it is back.
  static void leave_or_step(KernelThread& self, void* context) {
    self.stepping_ = 0;
    flags_of(context) &= ~kTrapFlag;
    if (!self.armed_) return;
    const auto* stop = self.stop_.load(std::memory_order_relaxed);
    if (stop == nullptr || stop->load(std::memory_order_relaxed) == CUDA_SUCCESS) return;
    const auto at = static_cast<std::uintptr_t>(
        static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    if ((at >= self.code_.begin && at < self.code_.end) || self.leave_anywhere_.load()) {
      leave(self, stop->load(std::memory_order_relaxed));
    }
    self.stepping_ = 1;
    flags_of(context) |= kTrapFlag;
  }

  // To whoever had the signal before us. A second pass for the same thread means that the previous
  // handler came back to us (faulthandler restores what it found and raises again): then the
  // default action ends it.
  static void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction& previous = previous_actions[signal];
    if (!passing_on) {
      passing_on = 1;
      if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
        previous.sa_sigaction(signal, info, context);
        passing_on = 0;
        return;
      }
      if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
        passing_on = 0;
        return;
      }
      if (previous.sa_handler == SIG_IGN && info->si_code <= 0) {  // sent by a process
        passing_on = 0;
        return;
      }
    }
    struct sigaction fallback {};
    fallback.sa_handler = SIG_DFL;
    sigaction(signal, &fallback, nullptr);
    if (info->si_code <= 0) raise(signal);  // not by an instruction that will fault again
  }

  static void install(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == handler) return;
    previous_actions[signal] = present;
    struct sigaction ours {};
    ours.sa_sigaction = handler;
    // SA_NODEFER, since the handler leaves by a jump; the stop signal waits, or it would begin to
    // step through the handler.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaddset(&ours.sa_mask, stop_signal());
    sigaction(signal, &ours, nullptr);
  }
};

void install_fault_handlers() {
  static auto& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  for (const int signal : kFaultSignals) FaultHandlers::install(signal, FaultHandlers::on_fault);
  FaultHandlers::install(stop_signal(), FaultHandlers::on_stop);
}

void check_fault_handlers() {
  struct sigaction present {};
  sigaction(SIGSEGV, nullptr, &present);
  if (present.sa_sigaction != FaultHandlers::on_fault) install_fault_handlers();
}

void block_other_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal : kFaultSignals) sigdelset(&set, signal);
  sigdelset(&set, stop_signal());
  pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

KernelThread::KernelThread()
    : thread_(pthread_self()), signal_stack_(new std::byte[kSignalStackBytes]) {
  stack_t stack{};
  stack.ss_sp = signal_stack_.get();
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
  const std::lock_guard lock(threads().mutex);
  threads().list.push_back(this);
  current_thread = this;
}

KernelThread::~KernelThread() {
  {
    const std::lock_guard lock(threads().mutex);
    std::erase(threads().list, this);
    current_thread = nullptr;
  }
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  std::free(scratch_);
}

KernelThread* KernelThread::current() { return current_thread; }

void* KernelThread::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    std::free(scratch_);
    scratch_bytes_ = 0;
    scratch_ = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (scratch_ == nullptr) throw std::bad_alloc();
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

CUresult run_guarded(std::atomic<CUresult>& stop, void (*body)(void*), void* argument,
                     CodeRange code) {
  KernelThread& self = *current_thread;
  self.code_ = code;
  self.leave_anywhere_.store(false);
  // A kernel may change how floats round or flush; what runs next on this thread, perhaps kjudge's
  // own comparison, must not see that.
  fenv_t float_mode;
  fegetenv(&float_mode);
  self.stop_.store(&stop);
  if (sigsetjmp(self.jump_, 0) != 0) {
    self.stop_.store(nullptr);
    fesetenv(&float_mode);
    return static_cast<CUresult>(self.fault_);
  }
  self.armed_ = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // After arming: a stop sent before it was ignored by the handler, and is seen here.
  const CUresult result = stop.load();
  if (result == CUDA_SUCCESS) body(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  self.armed_ = 0;
  self.stop_.store(nullptr);
  fesetenv(&float_mode);
  return result;
}

void stop_threads(const std::atomic<CUresult>& stop) {
  for (int milliseconds = 0; milliseconds < 2000; ++milliseconds) {
    bool any = false;
    {
      const std::lock_guard lock(threads().mutex);
      for (KernelThread* thread : threads().list) {
        if (thread->stop_.load() != &stop || thread == current_thread) continue;
        any = true;
        if (milliseconds >= 1000) thread->leave_anywhere_.store(true);
        pthread_kill(thread->thread_, stop_signal());
      }
    }
    if (!any) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace kjudge
