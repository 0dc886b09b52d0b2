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
}
