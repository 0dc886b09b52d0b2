// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kjudge {

// Looks again and again, from a thread of its own, at what processes have a context on a GPU: a
// pair for which NVML had to be asked first would find the GPU cooler. Ids say nothing where the
// judge runs in a container, so that processes are counted.
class OtherProcesses {
 public:
  using List = std::function<std::optional<std::vector<unsigned>>()>;

  // `own`: the most that the judge itself may have there. `list` is called from the thread until
  // this is destroyed.
  OtherProcesses(List list, std::size_t own);
  ~OtherProcesses();
  OtherProcesses(const OtherProcesses&) = delete;
  OtherProcesses& operator=(const OtherProcesses&) = delete;

  // What was seen since the last call; nullopt: nothing but the judge.
  std::optional<std::string> seen();

 private:
  void watch();

  const List list_;
  const std::size_t own_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::size_t most_ = 0;
  std::thread thread_;
};

}  // namespace kjudge
