// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace kjudge {

// By which a file is known to be as it was read.
struct FileStamp {
  std::int64_t modified_ns = 0, inode = 0;
  bool operator==(const FileStamp&) const = default;
};
// Of the file `name` in the open folder, or AT_FDCWD; nullopt where there is none.
std::optional<FileStamp> stamp_at(int folder, const char* name);
std::optional<FileStamp> stamp_of(const std::filesystem::path& path);

}  // namespace kjudge
