// SPDX-License-Identifier: Apache-2.0
#include "same_file.h"

#include <sys/stat.h>

namespace kjudge {

bool is_same_file(int open, const std::filesystem::path& path) {
  struct stat ours {
  }, there{};
  return ::fstat(open, &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

}  // namespace kjudge
