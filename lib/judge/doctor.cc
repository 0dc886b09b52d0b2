// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "driver/driver.h"
#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/sandbox.h"
#include "process.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

// First line of a file of the kernel's; empty when it is not there.
std::string kernel_value(const fs::path& path) {
  try {
    const std::string text = read_file(path, 1u << 20);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};
  }
}

Finding find_files() {
  const fs::path library = library_directory();
  for (const char* needed : {"libkjudge_recorder.so", "libkjudge_host_driver.so",
                             "harness/capture.py", "harness/driver.py"}) {
    if (!fs::exists(library / needed)) {
      return {State::failure, "kjudge's files", cat((library / needed).string(), " is missing"),
              "build or install kjudge again; the folder lib/kjudge belongs beside bin"};
    }
  }
  const fs::path header =
      library.parent_path().parent_path() / "include" / "kjudge" / "host_kernel.h";
  if (!fs::exists(header)) {
    return {State::failure, "kjudge's files", cat(header.string(), " is missing"),
            "build or install kjudge again; the folder include belongs beside bin"};
  }
  return {State::good, "kjudge's files", library.string(), ""};
}

void find_devices(DriverKind kind, std::vector<Finding>& findings) {
  const std::string label = cat(name(kind), " driver");
  try {
    const Driver& driver = Driver::open(kind);
    int count = 0;
    KJ_DRIVER(driver, cuDeviceGetCount(&count));
    for (int device = 0; device < count; ++device) {
      const DeviceIdentity found = identify(driver, device);
      findings.push_back(
          {State::good, label,
           cat("device ", device, ": ", found.name, ", ", found.arch, ", driver ", found.driver),
           ""});
    }
    if (count == 0) {
      findings.push_back(
          {State::warning, label, "no device", "shapes for sm_* cannot be judged here"});
    }
  } catch (const Error& error) {
    const bool optional_here = kind == DriverKind::cuda;
    findings.push_back({optional_here ? State::warning : State::failure, label, error.what(),
                        optional_here
                            ? "only shapes for x86_64 can be judged here; for GPUs install "
                              "NVIDIA's driver 580 or newer"
                            : "build or install kjudge again"});
  }
}

Finding find_program(const char* program, const char* what_for, State without) {
  ChildOptions child;
  child.program = "/usr/bin/env";
  child.arguments = {program, "--version"};
  const auto finished = run_to_end(child, std::chrono::seconds(10), 4096);
  if (!finished.status || !finished.status->ok()) {
    return {without, program, "not found",
            cat("install it (Debian: apt-get install ",
                std::string_view(program) == "cc" ? "gcc" : program, "); needed for ", what_for)};
  }
  return {State::good, program, finished.output.substr(0, finished.output.find('\n')), ""};
}

Finding find_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) throw_errno("sched_getaffinity");
  const int cores = CPU_COUNT(&set);
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::string what = cat(cores, " of ", online, " usable here");
  if (cores < 2) {
    return {State::warning, "cores", what,
            "with one core the supervisor disturbs the kernels it times; use a machine with two or "
            "more"};
  }
  return {State::good, "cores", what, ""};
}

Finding find_governor() {
  std::set<std::string> governors;
  std::error_code error;
  for (const auto& item : fs::directory_iterator("/sys/devices/system/cpu", error)) {
    const std::string governor = kernel_value(item.path() / "cpufreq" / "scaling_governor");
    if (!governor.empty()) governors.insert(governor);
  }
  if (governors.empty()) {
    return {State::good, "cpu governor", "not visible (a virtual machine, mostly)", ""};
  }
  std::string found;
  for (const std::string& governor : governors) found += (found.empty() ? "" : ", ") + governor;
  if (governors.size() == 1 && governors.contains("performance")) {
    return {State::good, "cpu governor", found, ""};
  }
  return {State::warning, "cpu governor", found,
          "times vary with the clock: cpupower frequency-set -g performance"};
}

Finding find_memory() {
  std::istringstream lines(read_file("/proc/meminfo", 1u << 20));
  std::uint64_t available_kb = 0;
  for (std::string key, rest; lines >> key && std::getline(lines, rest);) {
    if (key == "MemAvailable:") available_kb = std::strtoull(rest.c_str(), nullptr, 10);
  }
  std::string what = cat(available_kb >> 10, " MiB available");
  for (const char* limit_file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::uint64_t limit = std::strtoull(kernel_value(limit_file).c_str(), nullptr, 10);
    // Without a limit cgroup v1 says a number near 2^63, v2 the word max.
    if (limit == 0 || limit >= std::uint64_t{1} << 60) continue;
    what += cat(", cgroup limit ", limit >> 20, " MiB");
    if ((limit >> 10) < available_kb) available_kb = limit >> 10;
  }
  if (available_kb < 2u << 20) {
    return {
        State::warning, "memory", what,
        "two workers, the supervisor and the reference each hold a shape: 2 GiB or more is safe"};
  }
  return {State::good, "memory", what, ""};
}

Finding find_temporary_files() {
  std::error_code error;
  const auto space = fs::space(fs::temp_directory_path(), error);
  if (error)
    return {State::failure, "temporary files", error.message(),
            "set TMPDIR to a folder you can write"};
  const std::string what =
      cat(fs::temp_directory_path().string(), ", ", space.available >> 20, " MiB free");
  if (space.available < std::uintmax_t{1} << 30) {
    return {State::warning, "temporary files", what,
            "recordings go there: free 1 GiB, or set TMPDIR"};
  }
  return {State::good, "temporary files", what, ""};
}

Finding find_sandbox() {
  try {
    return {State::good, "sandbox", Sandbox({Driver::open(DriverKind::host), 0, {}}).describe(),
            ""};
  } catch (const Error& error) {
    return {State::warning, "sandbox", error.what(),
            "without it judge asks for --unsafe, and submissions run as you"};
  }
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::good:
      return "ok";
    case State::warning:
      return "warning";
    case State::failure:
      return "failure";
  }
  return "unknown";
}

std::vector<Finding> examine_machine() {
  std::vector<Finding> findings = {find_files()};
  find_devices(DriverKind::cuda, findings);
  find_devices(DriverKind::host, findings);
  findings.push_back(find_program("python3", "every capture", State::failure));
  findings.push_back(find_program("cc", "submissions that compile C", State::warning));
  findings.push_back(find_cores());
  findings.push_back(find_governor());
  findings.push_back(find_memory());
  findings.push_back(find_temporary_files());
  findings.push_back(find_sandbox());
  return findings;
}

}  // namespace kjudge
