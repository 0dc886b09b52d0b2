// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kjudge {

// A process, so that no later one is taken for it, nor one of another machine or container.
struct ProcessIdentity {
  std::string host;
  std::string boot_id;              // of the machine, this time
  std::uint64_t pid_namespace = 0;  // which the pid is of
  int pid = 0;
  std::uint64_t start_ticks = 0;  // after the boot
};

const ProcessIdentity& this_process();

// Whether it is known to have ended. A process of another machine or container is never known to.
bool has_ended(const ProcessIdentity& process);

// All of it but the host in a file name: "BOOT.4026531836.812.99231".
std::string mark_of(const ProcessIdentity& process);
bool has_ended(std::string_view mark);

}  // namespace kjudge
