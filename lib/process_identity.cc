// SPDX-License-Identifier: Apache-2.0
#include "process_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <sstream>

#include "error.h"
#include "file.h"

namespace kjudge {
namespace {

// Field 22 of /proc/PID/stat, counted after the name, which may hold anything. nullopt: no such
// process, or only what is left of it.
std::optional<std::uint64_t> start_of(const std::string& pid) {
  std::string stat;
  try {
    stat = read_file(cat("/proc/", pid, "/stat"), 1u << 16);
  } catch (const Error&) {
    return std::nullopt;
  }
  std::istringstream fields(stat.substr(std::min(stat.rfind(')'), stat.size() - 1) + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  std::uint64_t start = 0;
  if (!(fields >> start) || state == "Z" || state == "X") return std::nullopt;
  return start;
}

ProcessIdentity identify_this_process() {
  ProcessIdentity self;
  std::array<char, 256> host{};
  self.host = ::gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "unknown";
  self.boot_id = read_file("/proc/sys/kernel/random/boot_id", 100).substr(0, 36);
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) != 0) throw_errno("/proc/self/ns/pid");
  self.pid_namespace = status.st_ino;
  self.pid = ::getpid();
  const auto start = start_of("self");
  KJ_CHECK(start.has_value());
  self.start_ticks = *start;
  return self;
}

}  // namespace

const ProcessIdentity& this_process() {
  static const ProcessIdentity self = identify_this_process();
  return self;
}

bool has_ended(const ProcessIdentity& process) {
  const ProcessIdentity& self = this_process();
  if (process.boot_id != self.boot_id || process.pid_namespace != self.pid_namespace) return false;
  return start_of(std::to_string(process.pid)) != process.start_ticks;
}

std::string mark_of(const ProcessIdentity& process) {
  return cat(process.boot_id, ".", process.pid_namespace, ".", process.pid, ".",
             process.start_ticks);
}

bool has_ended(std::string_view mark) {
  std::istringstream parts{std::string(mark)};
  ProcessIdentity process;
  char dot = 0;
  if (!std::getline(parts, process.boot_id, '.') ||
      !(parts >> process.pid_namespace >> dot >> process.pid >> dot >> process.start_ticks)) {
    return false;
  }
  return has_ended(process);
}

}  // namespace kjudge
