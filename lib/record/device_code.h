// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "elf_image.h"
#include "record/rules.h"

namespace kjudge {

// Something that device code asks of the driver and that a replay cannot give.
struct DeviceCall {
  Rule rule;
  std::string_view symbol;
};

// By the names a cubin leaves to the driver, of all its kernels: which of them makes the call only
// the cubin's own call graph says, and whoever made the cubin wrote that. What device code calls
// differs with the toolkit: these are the names that nvcc 13.0 leaves, and those of the device
// runtime before CUDA 12. printf and assert are fine.
inline std::optional<DeviceCall> forbidden_call(const Elf& image) {
  if (image.machine() != kElfCuda) return std::nullopt;  // host kernels call libc
  for (const std::string_view name : image.undefined_symbols()) {
    if (name.find("LaunchDevice") != name.npos || name.substr(0, 9) == "cudaGraph") {
      return DeviceCall{Rule::device_launch, name};
    }
    if (name == "malloc" || name == "free" || name == "__cuda_syscall_aligned_malloc") {
      return DeviceCall{Rule::device_heap, name};
    }
  }
  return std::nullopt;
}

// The name of a managed variable of the cubin, whose memory the driver moves between host and
// device.
inline std::optional<std::string_view> managed_variable(const Elf& image) {
  for (const ElfVariable& variable : image.variables()) {
    if (variable.managed) return variable.name;
  }
  return std::nullopt;
}

// Whether a kernel is one of NCCL's, by its name as the driver tells it: mangled or not.
inline bool is_nccl_kernel(std::string_view name) {
  if (name.substr(0, 2) == "_Z") name.remove_prefix(2);
  name.remove_prefix(std::min(name.find_first_not_of("0123456789"), name.size()));
  return name.substr(0, 4) == "nccl" && name.find("Kernel") != name.npos;
}

}  // namespace kjudge
