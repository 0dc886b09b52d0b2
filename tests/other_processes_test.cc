// SPDX-License-Identifier: Apache-2.0
#include "replay/other_processes.h"

#include <doctest/doctest.h>

#include <atomic>

using namespace kjudge;

namespace {

// What NVML lists, and how often it was asked.
struct Gpu {
  std::atomic<unsigned> processes = 3, asked = 0;

  OtherProcesses::List list() {
    return [this]() -> std::optional<std::vector<unsigned>> {
      const unsigned now = processes;
      ++asked;
      if (now == 0) return std::nullopt;
      return std::vector<unsigned>(now, 4711);
    };
  }
  void wait_for_two() {
    const unsigned before = asked;
    while (asked < before + 2) std::this_thread::yield();
  }
};

}  // namespace

TEST_CASE("another process on the GPU is seen, though it came and went, and told once") {
  Gpu gpu;
  OtherProcesses others(gpu.list(), 3);
  gpu.wait_for_two();
  CHECK_FALSE(others.seen());
  gpu.processes = 5;
  gpu.wait_for_two();
  gpu.processes = 2;
  gpu.wait_for_two();
  CHECK(others.seen() == "5 processes used the GPU, at most 3 of them kjudge's");
  gpu.wait_for_two();
  CHECK_FALSE(others.seen());
}

TEST_CASE("a GPU that does not list its processes is asked once") {
  Gpu gpu;
  gpu.processes = 0;
  {
    OtherProcesses others(gpu.list(), 3);
    while (gpu.asked == 0) std::this_thread::yield();
    CHECK_FALSE(others.seen());
  }
  CHECK(gpu.asked == 1);
}
