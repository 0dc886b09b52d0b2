// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kjudge {

// Entries that a later one of the same name replaced, in the form they had. They live in a file of
// their own, since cuda.h names either the old or the new ones.
struct OldEntry {
  const char* name;
  int version;
  void* function;
};
extern const OldEntry kOldEntries[];
extern const std::size_t kOldEntryCount;

}  // namespace kjudge
