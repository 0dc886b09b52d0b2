// SPDX-License-Identifier: Apache-2.0
#include "store/numbered_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "error.h"
#include "file.h"
#include "same_file.h"
#include "store/random.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '0' ||
      number < 1 || number > kMostNumber) {
    return std::nullopt;
  }
  return number;
}

// Begins to write all files back: where that is under way for each, the first sync that follows
// brings all of them to the disk in one transaction of the file system's.
void begin_writing(const fs::path& folder) {
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (!item.is_regular_file() || item.is_symlink()) continue;
    const Fd fd(::open(item.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid()) ::sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}

void sync_contents(const fs::path& folder) {
  for (const auto& item : fs::directory_iterator(folder)) {
    if (item.is_directory() && !item.is_symlink()) sync_contents(item.path());
    if (!item.is_regular_file() || item.is_symlink()) continue;
    const Fd fd(::open(item.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid() || ::fsync(fd.get()) != 0) throw_errno(item.path().string());
  }
  sync_directory(folder);
}

}  // namespace

std::vector<int> numbered(const fs::path& folder) {
  std::vector<int> numbers;
  // There may be a hundred thousand, and <filesystem> makes a path of each.
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
  if (listed == nullptr) {
    if (errno == ENOENT) return numbers;
    throw_errno(folder.string());
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listed.get());
    if (entry == nullptr) break;
    if (const auto number = whole_number(entry->d_name)) numbers.push_back(*number);
  }
  if (errno != 0) throw_errno(folder.string());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Renamed rename_new(const fs::path& from, const fs::path& to) {
  const Fd folder(::open(from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) {
    if (errno == ENOENT) return Renamed::gone;
    throw_errno(from.string());
  }
  begin_writing(from);
  sync_contents(from);
  int failed = 0;
  if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) !=
      0) {
    failed = errno;
    // NFS knows no flags. Without them a folder still replaces only an empty one, and none is.
    if (failed == EINVAL || failed == ENOSYS) {
      failed = ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    }
  }
  if (failed != 0 && is_same_file(folder.get(), to)) failed = 0;
  if (failed == EEXIST || failed == ENOTEMPTY) return Renamed::exists;
  if (failed == ENOENT && !fs::exists(from)) return Renamed::gone;
  if (failed != 0) {
    errno = failed;
    throw_errno(to.string());
  }
  sync_directory(to.parent_path());
  if (from.parent_path() != to.parent_path()) sync_directory(from.parent_path());
  return Renamed::done;
}

UnfinishedFolder::UnfinishedFolder(const fs::path& parent)
    : path_(parent / unfinished_name(random_hex(4))) {
  fs::create_directory(path_);
}

UnfinishedFolder::~UnfinishedFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kjudge
