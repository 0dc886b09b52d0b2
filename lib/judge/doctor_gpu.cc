// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor_gpu.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "driver/driver.h"
#include "error.h"

namespace kjudge {
namespace {

using State = Finding::State;

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += cat(text.empty() ? "" : ", ", word);
  return text;
}

Finding compute_mode(const std::string& which, const std::string& mode) {
  if (mode == "default") return {State::good, which + "compute mode", mode, ""};
  return {State::failure, which + "compute mode", mode,
          "supervisor and workers each need a context: nvidia-smi -c DEFAULT"};
}

Finding persistence(const std::string& which, bool on) {
  if (on) return {State::good, which + "persistence mode", "on", ""};
  return {State::warning, which + "persistence mode", "off",
          "the driver is loaded anew whenever no process uses the GPU: nvidia-smi -pm 1"};
}

Finding ecc(const std::string& which, bool on) {
  if (on) return {State::good, which + "ECC", "on", ""};
  return {State::warning, which + "ECC", "off",
          "a flipped bit becomes a wrong result of a contestant's: nvidia-smi -e 1, then reboot"};
}

Finding mig(const std::string& which, bool on) {
  if (!on) return {State::good, which + "MIG", "off", ""};
  return {State::warning, which + "MIG", "on",
          "slices share memory bandwidth, power and clocks, and disturb each other's times: "
          "nvidia-smi -mig 0, or leave the other slices idle"};
}

Finding processes(const std::string& which, std::vector<unsigned> pids, unsigned own) {
  std::erase(pids, own);
  const std::string name = which + "other processes";
  if (pids.empty()) return {State::good, name, "none", ""};
  std::string text;
  for (const unsigned pid : pids) text += cat(text.empty() ? "process " : ", ", pid);
  return {State::warning, name, text,
          "what they run disturbs times: end them, or judge on another GPU"};
}

Finding clocks(const std::string& which, const GpuSettings& settings) {
  std::string what;
  const auto add = [&](const char* whose, std::optional<unsigned> now,
                       std::optional<unsigned> most) {
    if (!now) return;
    what += cat(what.empty() ? "" : ", ", whose, " ", *now, " MHz");
    if (most) what += cat(" of ", *most);
  };
  add("multiprocessors", settings.clock_mhz, settings.most_clock_mhz);
  add("memory", settings.memory_clock_mhz, settings.most_memory_clock_mhz);
  return {State::good, which + "clocks", what, ""};
}

// Read while kjudge runs nothing there: a reason that holds now holds for what will be judged too.
Finding throttle(const std::string& which, const std::vector<std::string>& reasons) {
  const std::string name = which + "throttled";
  if (reasons.empty()) return {State::good, name, "no", ""};
  const bool set_by_someone =
      std::find(reasons.begin(), reasons.end(), "applications_clocks") != reasons.end();
  return {State::warning, name, listed(reasons),
          set_by_someone
              ? "somebody set lower clocks; results are comparable with others under the same: "
                "nvidia-smi -rac, or leave it everywhere"
              : "see to cooling and power before judging; the void rule takes out pairs, not a "
                "slow hour"};
}

Finding pageable(const std::string& which, bool readable) {
  const std::string name = which + "pageable memory access";
  if (!readable) return {State::good, name, "no", ""};
  return {State::failure, name, "kernels can reach all memory of their process",
          "a submission could forge its times, so none is replayed: load nvidia_uvm with "
          "uvm_disable_hmm=1"};
}

// The driver's own switch; where it is on, only an administrator counts.
Finding counters() {
  const std::string name = "performance counters";
  std::ifstream file("/proc/driver/nvidia/params");
  bool restricted = false, known = false;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("RmProfilingAdminOnly:")) continue;
    known = true;
    restricted = line.find('1') != line.npos;
  }
  if (!known) {
    return {State::warning, name, "the driver does not say who may read them",
            "try kjudge profile; nothing else needs them"};
  }
  if (!restricted) return {State::good, name, "everybody may read them", ""};
  if (::geteuid() == 0) return {State::good, name, "for administrators, as you are", ""};
  return {State::warning, name, "only administrators may read them",
          "kjudge profile needs them, nothing else: run it as root, or load the module nvidia with "
          "NVreg_RestrictProfilingToAdminUsers=0"};
}

}  // namespace

std::vector<Finding> examine_settings(const std::string& which, const GpuSettings& settings,
                                      const GpuReading& reading, unsigned own) {
  std::vector<Finding> findings;
  if (settings.compute_mode) findings.push_back(compute_mode(which, *settings.compute_mode));
  if (settings.persistence) findings.push_back(persistence(which, *settings.persistence));
  if (settings.ecc) findings.push_back(ecc(which, *settings.ecc));
  if (settings.mig) findings.push_back(mig(which, *settings.mig));
  if (settings.processes) findings.push_back(processes(which, *settings.processes, own));
  if (settings.clock_mhz || settings.memory_clock_mhz) findings.push_back(clocks(which, settings));
  if (reading.throttle_reasons) findings.push_back(throttle(which, *reading.throttle_reasons));
  return findings;
}

std::vector<Finding> examine_gpus() {
  std::vector<Finding> findings;
  if (!cuda_available()) return findings;
  const Driver& driver = Driver::open(DriverKind::cuda);
  int count = 0;
  KJ_DRIVER(driver, cuDeviceGetCount(&count));
  for (int device = 0; device < count; ++device) {
    const std::string which = cat("GPU ", device, " ");
    const Nvml nvml(gpu_uuid(driver, device));
    const GpuSettings settings = nvml.settings();
    const auto found =
        examine_settings(which, settings, nvml.read(), static_cast<unsigned>(::getpid()));
    findings.insert(findings.end(), found.begin(), found.end());
    if (found.empty()) {
      findings.push_back({State::warning, which + "NVML", "says nothing of this GPU",
                          "its settings are not known; libnvidia-ml.so.1 comes with the driver"});
    }
    CUdevice handle = 0;
    int readable = 0;
    KJ_DRIVER(driver, cuDeviceGet(&handle, device));
    KJ_DRIVER(driver,
              cuDeviceGetAttribute(&readable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, handle));
    findings.push_back(pageable(which, readable != 0));
  }
  findings.push_back(counters());
  return findings;
}

}  // namespace kjudge
