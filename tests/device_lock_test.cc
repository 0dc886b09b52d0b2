// SPDX-License-Identifier: Apache-2.0
#include "judge/device_lock.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "error.h"

using namespace kjudge;

TEST_CASE("who waits for a device is told who has it, and gets it when the holder is killed") {
  const std::string device = cat("device lock test ", ::getpid());
  std::array<int, 2> held{};
  REQUIRE(::pipe(held.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const DeviceLock lock(device, nullptr);
    if (::write(held[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(held[0], &byte, 1) == 1);

  int waits = 0;
  const DeviceLock lock(device, [&](const std::optional<DeviceLock::Holder>& holder) {
    if (++waits > 1) return;
    CHECK(holder.has_value());
    if (holder) {
      CHECK(holder->pid == child);
      CHECK(holder->uid == ::geteuid());
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  });
  CHECK(waits >= 1);
  ::close(held[0]);
  ::close(held[1]);
}
