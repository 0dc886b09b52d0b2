// SPDX-License-Identifier: Apache-2.0
#include "store/file_stamp.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace kjudge {

std::optional<FileStamp> stamp_of(const std::filesystem::path& path) {
  return stamp_at(AT_FDCWD, path.c_str());
}

std::optional<FileStamp> stamp_at(int folder, const char* name) {
  struct stat status {};
  if (::fstatat(folder, name, &status, 0) != 0) return std::nullopt;
  return FileStamp{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                   static_cast<std::int64_t>(status.st_ino)};
}

}  // namespace kjudge
