// SPDX-License-Identifier: Apache-2.0

// A libnvidia-ml of three GPUs for tests/nvml_test.cc: one that tells all, one that tells nothing,
// and one of a driver before 535 (FAKE_NVML_OLD).
#include <cstring>

namespace {

enum { success = 0, not_supported = 3, not_found = 6 };
int users = 0;
int hot, silent;

}  // namespace

extern "C" {

int fake_nvml_users() { return users; }

int nvmlInit_v2() {
  ++users;
  return success;
}

int nvmlShutdown() {
  --users;
  return success;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (users == 0) return not_found;
  if (std::strcmp(uuid, "GPU-hot") == 0) {
    *device = &hot;
    return success;
  }
  if (std::strcmp(uuid, "GPU-silent") == 0) {
    *device = &silent;
    return success;
  }
  return not_found;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 698'500;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
  *degrees = 71;
  return device == &hot && sensor == 0 ? success : not_supported;
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = 0x001;  // idle
#else
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  *reasons = 0x425;  // idle, power cap, software thermal, and a bit of the future
#endif
  return device == &hot ? success : not_supported;
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetPersistenceMode(void* device, unsigned* mode) {
  *mode = 1;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetEccMode(void* device, unsigned* current, unsigned* pending) {
  *current = 0;
  *pending = 1;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = 1;
  *pending = 0;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetComputeMode(void* device, unsigned* mode) {
  *mode = 3;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetClockInfo(void* device, int domain, unsigned* mhz) {
  *mhz = domain == 1 ? 345 : 2619;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetMaxClockInfo(void* device, int domain, unsigned* mhz) {
  *mhz = domain == 1 ? 1980 : 3201;
  return device == &hot ? success : not_supported;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* infos) {
  struct Info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
  };
  if (*count < 2) return not_supported;
  *count = 2;
  static_cast<Info*>(infos)[0] = {4711, 1u << 20, 0, 0};
  static_cast<Info*>(infos)[1] = {42, 1u << 20, 0, 0};
  return device == &hot ? success : not_supported;
}
#endif
}
