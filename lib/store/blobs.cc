// SPDX-License-Identifier: Apache-2.0
#include "store/blobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "error.h"
#include "file.h"
#include "sha256.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// What a file system answers that has no links, or no more for this file.
bool has_no_link() { return errno == EMLINK || errno == EPERM || errno == EOPNOTSUPP; }

fs::path blob_of(const fs::path& results, const std::string& sha256) {
  return results / "blobs" / "sha256" / sha256.substr(0, 2) / sha256.substr(2);
}

}  // namespace

void share_file(const fs::path& results, const fs::path& file, const std::string& sha256) {
  const fs::path blob = blob_of(results, sha256);
  fs::create_directories(blob.parent_path());
  if (::link(file.c_str(), blob.c_str()) == 0 || has_no_link()) return;
  if (errno != EEXIST) throw_errno(blob.string());
  struct stat ours {
  }, there{};
  if (::stat(file.c_str(), &ours) != 0) throw_errno(file.string());
  // A blob that is damaged is for fsck to tell, and gets no more files.
  if (::stat(blob.c_str(), &there) != 0 || there.st_size != ours.st_size) return;
  const Fd fd(::open(blob.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() || sha256_of_file(fd.get(), blob.string()) != sha256) return;
  const fs::path second = file.string() + ".tmp.blob";
  if (::link(blob.c_str(), second.c_str()) != 0) {
    if (has_no_link() || errno == ENOENT) return;
    throw_errno(second.string());
  }
  // Where both are one file already, the rename does nothing.
  const bool renamed = ::rename(second.c_str(), file.c_str()) == 0;
  const int failed = errno;
  ::unlink(second.c_str());
  if (!renamed) {
    errno = failed;
    throw_errno(file.string());
  }
}

void share_files(const fs::path& results, const fs::path& folder) {
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    const bool program = (item.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    if (!item.is_regular_file() || program) continue;
    const Fd fd(::open(item.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) throw_errno(item.path().string());
    share_file(results, item.path(), sha256_of_file(fd.get(), item.path().string()));
  }
}

void remove_shared(const fs::path& results, const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) throw_errno(file.string());
  const fs::path blob = blob_of(results, sha256_of_file(fd.get(), file.string()));
  struct stat status {};
  if (::unlink(file.c_str()) != 0) throw_errno(file.string());
  // Whoever makes a link to it at this moment keeps a file of its own.
  if (::stat(blob.c_str(), &status) == 0 && status.st_nlink == 1) ::unlink(blob.c_str());
}

bool link_or_copy(const fs::path& file, const fs::path& to) {
  if (::link(file.c_str(), to.c_str()) == 0) return true;
  if (errno == ENOENT && !fs::exists(file)) return false;
  if (!has_no_link()) throw_errno(to.string());
  return fs::copy_file(file, to);
}

}  // namespace kjudge
