// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kjudge {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A directory of its own under TMPDIR, removed with all it holds when this goes. What killed
// processes of this user left there is removed when the next one is made, whatever its prefix,
// which begins with "kjudge".
class TempDir {
 public:
  explicit TempDir(std::string_view prefix = "kjudge");
  TempDir(TempDir&&) = default;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Fd lock_;  // flock of the directory: free when its owner is gone
};

// The whole file; Fault::host when it cannot be read, Fault::malformed over `limit_bytes` and where
// it is no regular file, which may have no end. A pipe is read only where it was given to this
// process to be read, as by a shell's <(command): see is_given().
std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes = 256u << 20);

// Whether a path names a descriptor that this process began with: /dev/stdin, /dev/fd/63.
bool is_given(const std::filesystem::path& path);

enum class IfExists { replace, fail };

// Fault::host unless a new file may take the place of what is at `path`: nothing, or a file. Of a
// device, a pipe, a link or a folder a rename would leave nothing. So where its folder is not
// there.
void require_replaceable(const std::filesystem::path& path);

// Writes `path` so that a reader, or a crash at any point, sees the old file or the new one whole:
// temporary file in the same folder (unfinished.h), fsync, rename, fsync of the folder. With
// IfExists::fail an existing file is left and false is returned.
bool write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           IfExists if_exists = IfExists::replace);

// As a reader sees it the same, but not synced: after a crash of the machine the file may be empty.
// For what can be made again.
void replace_file(const std::filesystem::path& path, std::string_view bytes);

// Writes a file that is not there yet into a folder that nobody reads yet: not synced, and whole
// only if this returns. Fault::host when it exists.
void write_new_file(const std::filesystem::path& path, std::string_view bytes);

void sync_directory(const std::filesystem::path& directory);

// Folder with the recorder, host driver and harness that belong to this binary:
// ../lib/kjudge seen from the executable. Fault::usage where the dynamic linker would read another
// path.
std::filesystem::path library_directory();

}  // namespace kjudge
