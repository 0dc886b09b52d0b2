// SPDX-License-Identifier: Apache-2.0
#include "driver/host/entry.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver/host/context.h"
#include "driver/host/guard.h"

namespace kjudge {
namespace {

std::atomic<bool> started{false};
std::atomic<bool> forked{false};

}  // namespace

void log_line(const std::string& text) {
  static const bool asked = [] {
    const char* value = std::getenv("KJUDGE_HOST_LOG");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  if (asked) std::fprintf(stderr, "kjudge host driver: %s\n", text.c_str());
}

bool initialized() { return started.load(std::memory_order_relaxed) && !forked.load(); }

void start() {
  require(!forked.load(), CUDA_ERROR_NOT_INITIALIZED);
  if (started.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  install_fault_handlers();
}

}  // namespace kjudge
