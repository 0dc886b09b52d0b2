// SPDX-License-Identifier: Apache-2.0
#include "driver/driver.h"

#include <dlfcn.h>

#include <algorithm>

#include "file.h"

namespace kjudge {
namespace {

std::filesystem::path library_of(DriverKind kind) {
  if (kind == DriverKind::cuda) return "libcuda.so.1";
  return library_directory() / "libkjudge_host_driver.so";
}

Driver load(DriverKind kind) {
  const auto path = library_of(kind);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    throw Error(
        Fault::device,
        kind == DriverKind::cuda
            ? cat("no CUDA driver: ", reason, "; install NVIDIA's driver, or use --driver host")
            : cat("host driver: ", reason, "; the installation is incomplete"));
  }
  auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(::dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    throw Error(Fault::device,
                cat(path.string(), ": no cuGetProcAddress_v2; driver older than CUDA 12"));
  }
  Driver driver = Driver::resolve(kind, get);
  driver.library = path;
  KJ_DRIVER(driver, cuInit(0));
  return driver;
}

}  // namespace

std::string_view name(DriverKind kind) { return kind == DriverKind::cuda ? "cuda" : "host"; }

Driver Driver::resolve(DriverKind kind, PFN_cuGetProcAddress_v12000 get_proc_address) {
  Driver driver;
  driver.kind = kind;
  const auto find = [&](const char* entry, int version) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult found;
    const CUresult result = get_proc_address(entry, &function, version, 0, &found);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND) {
      throw Error(Fault::device, cat("cuGetProcAddress of ", entry, ": the ", name(kind),
                                     " driver answers ", static_cast<int>(result)));
    }
    if (result != CUDA_SUCCESS || function == nullptr) {
      throw Error(Fault::device,
                  cat("the ", name(kind), " driver has no ", entry, " of CUDA ", version / 1000,
                      ".", version % 1000 / 10, "; install a newer driver"));
    }
    return function;
  };
#define KJ_DRIVER_RESOLVE(entry, version) \
  driver.entry = reinterpret_cast<PFN_##entry##_v##version>(find(#entry, version));
  KJ_DRIVER_ENTRIES(KJ_DRIVER_RESOLVE)
#undef KJ_DRIVER_RESOLVE
  return driver;
}

const Driver& Driver::open(DriverKind kind) {
  if (kind == DriverKind::cuda) {
    static const Driver cuda = load(DriverKind::cuda);
    return cuda;
  }
  static const Driver host = load(DriverKind::host);
  return host;
}

bool cuda_available() {
  try {
    const Driver& driver = Driver::open(DriverKind::cuda);
    int count = 0;
    return driver.cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
  } catch (const Error&) {
    return false;
  }
}

std::string driver_release(DriverKind kind) {
  if (kind == DriverKind::host) return "";
  try {
    return driver_release_in(read_file("/proc/driver/nvidia/version"));
  } catch (const Error&) {
    return "";
  }
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (...)"
std::string driver_release_in(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos) {
      return std::string(word);
    }
  }
  return "";
}

std::string gpu_uuid(const Driver& driver, int device) {
  CUdevice handle = 0;
  KJ_DRIVER(driver, cuDeviceGet(&handle, device));
  CUuuid uuid{};
  KJ_DRIVER(driver, cuDeviceGetUuid(&uuid, handle));
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool is_kernel_fault(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return true;
    default:
      return false;
  }
}

void check_driver(const Driver& driver, CUresult result, std::string_view call,
                  std::source_location where) {
  if (result == CUDA_SUCCESS) return;
  const char* code = nullptr;
  const char* text = nullptr;
  driver.cuGetErrorName(result, &code);
  driver.cuGetErrorString(result, &text);
  throw DriverError(
      result, cat(call, ": ", code ? code : "unknown error", " (", text ? text : "?", ")"), where);
}

}  // namespace kjudge
