// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "challenge/challenge.h"

namespace kjudge {

// The most that a challenge's tensors need in one capture, in bytes of device memory, as its
// limits.memory_bytes counts them.
struct TensorMemory {
  std::uint64_t bytes = 0;
  std::string arch;  // whose shapes need it
};
TensorMemory tensor_memory(const Challenge& challenge);

}  // namespace kjudge
