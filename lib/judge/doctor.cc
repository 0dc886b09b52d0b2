// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor.h"

#include <linux/landlock.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include "driver/driver.h"
#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/doctor_gpu.h"
#include "judge/pipeline.h"
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

Finding find_python() {
  Finding finding = find_program("python3", "every capture", State::failure);
  if (finding.state != State::good) return finding;
  ChildOptions child;
  child.program = "/usr/bin/env";
  child.arguments = {"python3", "-B", (library_directory() / "harness/_python.py").string()};
  const auto finished = run_to_end(child, std::chrono::seconds(10), 4096);
  if (finished.status && finished.status->ok()) return finding;
  return {State::failure, finding.name, finding.what,
          finished.output.substr(0, finished.output.find('\n'))};
}

// The recorder holds a CUPTI of the toolkit that built it; an older driver refuses it.
Finding find_cupti() {
  const Driver& driver = Driver::open(DriverKind::cuda);
  int version = 0;
  KJ_DRIVER(driver, cuDriverGetVersion(&version));
  const auto text = [](int number) { return cat(number / 1000, ".", number % 1000 / 10); };
  const std::string what =
      cat("of CUDA ", text(CUDA_VERSION), ", in the recorder; the driver is ", text(version));
  if (version >= CUDA_VERSION) return {State::good, "CUPTI", what, ""};
  return {State::warning, "CUPTI", what,
          "captures may fail: install a newer driver, or build kjudge with the driver's toolkit"};
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

// `find` throws where the environment names no folder.
Finding find_space(const std::string& name, const std::function<fs::path()>& find,
                   const char* advice) {
  fs::path folder;
  try {
    folder = find();
  } catch (const std::exception& none) {
    return {State::failure, name, none.what(), advice};
  }
  fs::path there = folder;
  std::error_code error;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const auto space = fs::space(there, error);
  if (error) return {State::failure, name, cat(folder.string(), ": ", error.message()), advice};
  const std::string what = cat(folder.string(), ", ", space.available >> 20, " MiB free");
  if (space.available < std::uintmax_t{1} << 30) {
    return {State::warning, name, what, cat("recordings go there: free 1 GiB, or ", advice)};
  }
  return {State::good, name, what, ""};
}

// In a child: a process with threads may not.
Finding find_user_namespaces() {
  const std::string name = "user namespaces";
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) ::_exit(::unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return {State::good, name, "can be made", ""};
  std::string why = "cannot be made";
  for (const char* path :
       {"/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"}) {
    const std::string value = kernel_value(path);
    if (!value.empty()) why += cat(", ", fs::path(path).filename().string(), " is ", value);
  }
  if (::geteuid() == 0) why += "; root needs none";
  return {::geteuid() == 0 ? State::good : State::warning, name, why,
          ::geteuid() == 0 ? ""
                           : "the sandbox is made of them unless root judges; allow them with "
                             "sysctl, or in a container with its seccomp profile"};
}

Finding find_landlock() {
  const auto version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version >= 1) return {State::good, "Landlock", cat("version ", version), ""};
  return {State::warning, "Landlock", "not in this kernel, or not switched on",
          "workers close files by system call filter alone: Linux 5.13 or newer, with landlock in "
          "the kernel's parameter lsm="};
}

Finding find_seccomp() {
  const std::string actions = kernel_value("/proc/sys/kernel/seccomp/actions_avail");
  const bool there =
      ::prctl(PR_GET_SECCOMP) >= 0 && (actions.empty() || actions.find("errno") != actions.npos);
  if (there) return {State::good, "seccomp", actions.empty() ? "there" : actions, ""};
  return {State::failure, "seccomp", "not in this kernel",
          "workers and submissions run behind a system call filter: a kernel with "
          "CONFIG_SECCOMP_FILTER"};
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
  const std::vector<Finding> gpus = examine_gpus();
  findings.insert(findings.end(), gpus.begin(), gpus.end());
  if (!gpus.empty()) {
    findings.push_back(find_cupti());
    findings.push_back(find_program("nvcc", "submissions in CUDA C++", State::warning));
    findings.push_back(find_program("ncu", "kjudge profile", State::warning));
  }
  find_devices(DriverKind::host, findings);
  findings.push_back(find_python());
  findings.push_back(find_program("cc", "submissions that compile C", State::warning));
  findings.push_back(find_cores());
  findings.push_back(find_governor());
  findings.push_back(find_memory());
  findings.push_back(find_space(
      "temporary files", [] { return fs::temp_directory_path(); },
      "set TMPDIR to a folder you can write"));
  findings.push_back(find_space("cache", cache_path, "set XDG_CACHE_HOME"));
  findings.push_back(find_user_namespaces());
  findings.push_back(find_landlock());
  findings.push_back(find_seccomp());
  findings.push_back(find_sandbox());
  return findings;
}

}  // namespace kjudge
