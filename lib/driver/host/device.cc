// SPDX-License-Identifier: Apache-2.0
// The device: this machine's processors and memory.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "driver/host/context.h"
#include "driver/host/memory.h"
#include "driver/host/module.h"
#include "driver/host/pool.h"

using namespace kjudge;

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// Bytes of the last-level caches of all processors together.
std::uint64_t last_level_cache() {
  std::map<std::string, std::uint64_t> by_sharers;  // each cache once
  std::error_code error;
  for (const auto& cpu : std::filesystem::directory_iterator("/sys/devices/system/cpu", error)) {
    std::uint64_t deepest = 0, bytes = 0;
    std::string sharers;
    for (const auto& index : std::filesystem::directory_iterator(cpu.path() / "cache", error)) {
      const std::string level = first_line(index.path() / "level");
      const std::string size = first_line(index.path() / "size");  // "33792K"
      if (level.empty() || size.empty() || first_line(index.path() / "type") == "Instruction") {
        continue;
      }
      const std::uint64_t depth = std::strtoull(level.c_str(), nullptr, 10);
      if (depth <= deepest) continue;
      deepest = depth;
      bytes = std::strtoull(size.c_str(), nullptr, 10) * (size.back() == 'M' ? 1u << 20 : 1024);
      sharers = level + ":" + first_line(index.path() / "shared_cpu_map");
    }
    if (deepest > 0) by_sharers.emplace(sharers, bytes);
  }
  std::uint64_t total = 0;
  for (const auto& [sharers, bytes] : by_sharers) total += bytes;
  return total > 0 ? total : 32u << 20;  // a sandbox may hide it; larger evicts more than needed
}

int clamp_to_int(std::uint64_t value) {
  return static_cast<int>(std::min<std::uint64_t>(value, 0x7fffffff));
}

std::uint64_t mixed(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Compute capability 0.0 and registers 0 say that nothing made for a GPU runs here.
int attribute(CUdevice_attribute which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return kMaxThreadsPerBlock;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return kDefaultSharedBytes;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return kMaxSharedBytes;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(core_count());
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: {
      static const int bytes = clamp_to_int(last_level_cache());
      return bytes;
    }
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      return CU_COMPUTEMODE_DEFAULT;
    default:
      return 0;  // all else: not supported, or none
  }
}

}  // namespace

namespace kjudge {

int device_count() {
  static const int count = [] {
    const char* text = std::getenv("KJUDGE_HOST_DEVICES");
    if (text == nullptr) return 1;
    const int wanted = std::atoi(text);
    if (wanted >= 1 && wanted <= kMostDevices) return wanted;
    log_line(std::string("KJUDGE_HOST_DEVICES=") + text + ": expected 1 to 16; there is 1");
    return 1;
  }();
  return count;
}

void check_device(int device) {
  require(device >= 0 && device < device_count(), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace kjudge

CUresult CUDAAPI cuInit(unsigned flags) {
  return process_call(__func__, [&] {
    require(flags == 0);
    start();
  });
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return process_call(__func__, [&] {
    require(version != nullptr);
    *version = 13000;
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return device_call(__func__, [&] {
    require(device != nullptr);
    check_device(ordinal);
    *device = ordinal;
  });
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return device_call(__func__, [&] {
    require(count != nullptr);
    *count = device_count();
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return device_call(__func__, [&] {
    require(name != nullptr && length > 0);
    check_device(device);
    static const auto& text = *new std::string("kjudge host driver: " + cpu_model());
    const std::size_t copied = text.copy(name, static_cast<std::size_t>(length) - 1);
    name[copied] = '\0';
  });
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return device_call(__func__, [&] {
    require(uuid != nullptr);
    check_device(device);
    std::string machine = first_line("/etc/machine-id");
    if (machine.empty()) machine = first_line("/proc/sys/kernel/random/boot_id");
    machine += cpu_model();
    if (device > 0) machine += std::to_string(device);
    const std::uint64_t halves[2] = {mixed(machine, 0xcbf29ce484222325),
                                     mixed(machine, 0x84222325cbf29ce4)};
    static_assert(sizeof(halves) == sizeof(*uuid));
    std::memcpy(uuid, halves, sizeof(halves));
  });
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return device_call(__func__, [&] {
    require(bytes != nullptr);
    check_device(device);
    *bytes = Memory::get().total();
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  return device_call(__func__, [&] {
    require(value != nullptr && which > 0 && which < CU_DEVICE_ATTRIBUTE_MAX);
    check_device(device);
    *value = attribute(which);
  });
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return device_call(__func__, [&] {
    require(can != nullptr);
    check_device(device);
    check_device(peer);
    *can = 0;
  });
}
