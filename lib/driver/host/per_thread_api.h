// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kjudge {

// The entries with a default stream per thread, by the name that cuGetProcAddress takes.
struct PerThreadEntry {
  const char* name;
  int version;
  void* function;
};
extern const PerThreadEntry kPerThreadEntries[];
extern const std::size_t kPerThreadEntryCount;

}  // namespace kjudge
