// SPDX-License-Identifier: Apache-2.0
#include "replay/other_processes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "error.h"

namespace kjudge {

OtherProcesses::OtherProcesses(List list, std::size_t own)
    : list_(std::move(list)), own_(own), thread_([this] { watch(); }) {}

OtherProcesses::~OtherProcesses() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void OtherProcesses::watch() {
  constexpr std::chrono::milliseconds kEvery{50};
  std::unique_lock lock(mutex_);
  while (!ended_) {
    lock.unlock();
    const auto listed = list_();
    lock.lock();
    if (!listed) return;
    most_ = std::max(most_, listed->size());
    end_.wait_for(lock, kEvery, [this] { return ended_; });
  }
}

std::optional<std::string> OtherProcesses::seen() {
  const std::lock_guard lock(mutex_);
  const std::size_t most = std::exchange(most_, 0);
  if (most <= own_) return std::nullopt;
  return cat(most, " processes used the GPU, at most ", own_, " of them kjudge's");
}

}  // namespace kjudge
