// SPDX-License-Identifier: Apache-2.0
#include "driver/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "error.h"

namespace kjudge {
namespace {

constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTemperatureGpu = 0;

// nvmlClocksEventReason*, older drivers' nvmlClocksThrottleReason*. Bit 0, an idle GPU, is left
// out: kjudge reads while it runs nothing.
constexpr std::array<std::pair<unsigned long long, const char*>, 8> kReasons = {{
    {0x002, "applications_clocks"},
    {0x004, "sw_power_cap"},
    {0x008, "hw_slowdown"},
    {0x010, "sync_boost"},
    {0x020, "sw_thermal_slowdown"},
    {0x040, "hw_thermal_slowdown"},
    {0x080, "hw_power_brake_slowdown"},
    {0x100, "display_clock"},
}};
constexpr unsigned long long kIdle = 0x001;

std::vector<std::string> reason_names(unsigned long long bits) {
  std::vector<std::string> names;
  bits &= ~kIdle;
  for (const auto& [bit, reason] : kReasons) {
    if ((bits & bit) != 0) names.emplace_back(reason);
    bits &= ~bit;
  }
  if (bits != 0) names.push_back(cat("unknown ", hex(bits)));
  return names;
}

template <class Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  return function != nullptr;
}

}  // namespace

// The library is not closed again: NVIDIA's does not promise to survive that.
Nvml::Nvml(const std::string& uuid, const std::filesystem::path& library) {
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return;
  int (*initialize)() = nullptr;
  int (*stop)() = nullptr;
  int (*by_uuid)(const char*, Device*) = nullptr;
  if (!find(loaded, "nvmlInit_v2", initialize) || !find(loaded, "nvmlShutdown", stop) ||
      !find(loaded, "nvmlDeviceGetHandleByUUID", by_uuid) || initialize() != kNvmlSuccess) {
    return;
  }
  shutdown_ = stop;
  if (by_uuid(uuid.c_str(), &device_) != kNvmlSuccess) {
    device_ = nullptr;
    return;
  }
  loaded_ = loaded;
  find(loaded, "nvmlDeviceGetPowerUsage", power_);
  find(loaded, "nvmlDeviceGetTemperature", temperature_);
  // Named anew with driver 535.
  if (!find(loaded, "nvmlDeviceGetCurrentClocksEventReasons", reasons_)) {
    find(loaded, "nvmlDeviceGetCurrentClocksThrottleReasons", reasons_);
  }
}

Nvml::~Nvml() {
  if (shutdown_ != nullptr) shutdown_();
}

GpuReading Nvml::read() const {
  GpuReading reading;
  unsigned value = 0;
  if (power_ != nullptr && power_(device_, &value) == kNvmlSuccess) {
    reading.power_w = value * 1e-3;
  }
  if (temperature_ != nullptr &&
      temperature_(device_, kNvmlTemperatureGpu, &value) == kNvmlSuccess) {
    reading.temperature_c = value;
  }
  unsigned long long bits = 0;
  if (reasons_ != nullptr && reasons_(device_, &bits) == kNvmlSuccess) {
    reading.throttle_reasons = reason_names(bits);
  }
  return reading;
}

GpuSettings Nvml::settings() const {
  GpuSettings settings;
  if (device_ == nullptr) return settings;
  const auto number = [&](const char* symbol) -> std::optional<unsigned> {
    int (*get)(Device, unsigned*) = nullptr;
    unsigned value = 0;
    if (!find(loaded_, symbol, get) || get(device_, &value) != kNvmlSuccess) return std::nullopt;
    return value;
  };
  // Of what can be pending until a reset; that is not asked for.
  const auto state = [&](const char* symbol) -> std::optional<bool> {
    int (*get)(Device, unsigned*, unsigned*) = nullptr;
    unsigned current = 0, pending = 0;
    if (!find(loaded_, symbol, get) || get(device_, &current, &pending) != kNvmlSuccess) {
      return std::nullopt;
    }
    return current != 0;
  };
  const auto clock = [&](const char* symbol, int domain) -> std::optional<unsigned> {
    int (*get)(Device, int, unsigned*) = nullptr;
    unsigned mhz = 0;
    if (!find(loaded_, symbol, get) || get(device_, domain, &mhz) != kNvmlSuccess) {
      return std::nullopt;
    }
    return mhz;
  };
  if (const auto on = number("nvmlDeviceGetPersistenceMode")) settings.persistence = *on != 0;
  settings.ecc = state("nvmlDeviceGetEccMode");
  settings.mig = state("nvmlDeviceGetMigMode");
  constexpr std::array<const char*, 4> kModes = {"default", "exclusive_thread", "prohibited",
                                                 "exclusive_process"};
  if (const auto mode = number("nvmlDeviceGetComputeMode")) {
    settings.compute_mode = *mode < kModes.size() ? kModes[*mode] : cat("unknown ", *mode);
  }
  constexpr int kMultiprocessors = 1, kMemory = 2;  // nvmlClockType_t
  settings.clock_mhz = clock("nvmlDeviceGetClockInfo", kMultiprocessors);
  settings.most_clock_mhz = clock("nvmlDeviceGetMaxClockInfo", kMultiprocessors);
  settings.memory_clock_mhz = clock("nvmlDeviceGetClockInfo", kMemory);
  settings.most_memory_clock_mhz = clock("nvmlDeviceGetMaxClockInfo", kMemory);
  settings.processes = processes();
  return settings;
}

std::optional<std::vector<unsigned>> Nvml::processes() const {
  struct ProcessInfo {  // nvmlProcessInfo_v2_t
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
  };
  int (*list)(Device, unsigned*, ProcessInfo*) = nullptr;
  std::array<ProcessInfo, 256> infos{};
  unsigned count = infos.size();
  if (device_ == nullptr || !find(loaded_, "nvmlDeviceGetComputeRunningProcesses_v3", list) ||
      list(device_, &count, infos.data()) != kNvmlSuccess) {
    return std::nullopt;
  }
  std::vector<unsigned> pids;
  for (unsigned i = 0; i < count && i < infos.size(); ++i) pids.push_back(infos[i].pid);
  return pids;
}

}  // namespace kjudge
