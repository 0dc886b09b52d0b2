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
  if (by_uuid(uuid.c_str(), &device_) != kNvmlSuccess) return;
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

}  // namespace kjudge
