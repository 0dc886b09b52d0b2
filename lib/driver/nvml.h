// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kjudge {

// What a GPU says of itself at one moment; absent is what it does not say.
struct GpuReading {
  std::optional<double> power_w, temperature_c;
  // Why its clocks are held below what they could be: "sw_power_cap". Empty: for no reason.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// How a GPU is set up; absent is what it does not say.
struct GpuSettings {
  std::optional<bool> persistence, ecc, mig;
  std::optional<std::string> compute_mode;  // "default", "exclusive_process", "prohibited", ...
  std::optional<unsigned> clock_mhz, most_clock_mhz, memory_clock_mhz, most_memory_clock_mhz;
  std::optional<std::vector<unsigned>> processes;  // that have a context on it
};

// One GPU as NVIDIA's management library sees it, loaded at run time. Nothing that is measured
// depends on it: without the library, the GPU or a function of it, readings are absent.
class Nvml {
 public:
  // `uuid` as gpu_uuid() has it.
  explicit Nvml(const std::string& uuid,
                const std::filesystem::path& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  GpuReading read() const;
  GpuSettings settings() const;
  // Ids, as NVML sees them, of what has a context on the GPU; nullopt: it does not say.
  std::optional<std::vector<unsigned>> processes() const;

 private:
  // nvml.h is no part of what building needs. These are its types: nvmlReturn_t is an enumeration
  // whose 0 is success, nvmlDevice_t a pointer.
  using Device = void*;
  using GetUnsigned = int (*)(Device, unsigned*);
  using GetTemperature = int (*)(Device, int sensor, unsigned*);
  using GetReasons = int (*)(Device, unsigned long long*);

  void* loaded_ = nullptr;
  Device device_ = nullptr;      // null: NVML does not know the GPU
  int (*shutdown_)() = nullptr;  // set: the library is initialized
  GetUnsigned power_ = nullptr;
  GetTemperature temperature_ = nullptr;
  GetReasons reasons_ = nullptr;
};

}  // namespace kjudge
