// SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "error.h"
#include "same_file.h"
#include "unfinished.h"

namespace kjudge {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

namespace {

// What follows the prefix of a temporary directory: nobody calls a folder of his own that.
constexpr std::string_view kMark = ".tmp-", kPlaces = "XXXXXX";

bool is_temporary(std::string_view name) {
  return name.starts_with("kjudge") && name.size() > kMark.size() + kPlaces.size() &&
         name.substr(name.size() - kMark.size() - kPlaces.size()).starts_with(kMark);
}

// The directory, locked, if it is this user's own; `taken`: somebody else has the lock.
Fd lock_directory(const std::filesystem::path& path, bool& taken) {
  taken = false;
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_uid != ::geteuid()) return Fd();
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  taken = errno == EWOULDBLOCK;
  return Fd();
}

// Each is locked by its owner as long as that lives.
void remove_left_behind(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_temporary(at->path().filename().native())) continue;
    bool taken = false;
    std::error_code ignored;
    if (const Fd lock = lock_directory(at->path(), taken); lock.valid()) {
      fs::remove_all(at->path(), ignored);
    }
  }
}

}  // namespace

TempDir::TempDir(std::string_view prefix) {
  KJ_CHECK(prefix.starts_with("kjudge"));
  std::error_code error;
  const std::filesystem::path given = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* named = std::getenv("TMPDIR");
    throw Error(Fault::usage, cat("TMPDIR=", named != nullptr ? named : "/tmp",
                                  ": no folder for temporary files; set TMPDIR to one"));
  }
  // Absolute: it is handed to processes that run elsewhere.
  const std::filesystem::path folder = std::filesystem::absolute(given);
  remove_left_behind(folder);
  // Until it is locked another process may take it for one that was left, and remove it.
  for (bool taken = true; taken;) {
    std::string pattern = (folder / cat(prefix, kMark, kPlaces)).string();
    if (::mkdtemp(pattern.data()) == nullptr) throw_errno(pattern);
    path_ = pattern;
    lock_ = lock_directory(path_, taken);
    taken = taken || !std::filesystem::exists(path_);
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

bool is_given(const std::filesystem::path& path) {
  const std::string& name = path.native();
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(folder) || name.size() == folder.size()) continue;
    return name.find_first_not_of("0123456789", folder.size()) == name.npos;
  }
  return name == "/dev/stdin";
}

std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  // At once, and never from what may have no end: a FIFO, /dev/zero.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) throw_errno(path.string());
  const bool pipe = S_ISFIFO(status.st_mode) && is_given(path);
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !pipe) {
    throw Error(Fault::malformed, cat(path.string(), ": not a regular file"));
  }
  const auto require_size = [&](std::uintmax_t size) {
    if (size <= limit_bytes) return;
    throw Error(Fault::malformed, cat(path.string(), ": larger than ", limit_bytes, " bytes"));
  };
  require_size(static_cast<std::uintmax_t>(S_ISREG(status.st_mode) ? status.st_size : 0));
  std::string bytes;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN && pipe) {
        pollfd more{fd.get(), POLLIN, 0};
        ::poll(&more, 1, -1);
        continue;
      }
      throw_errno(path.string());
    }
    if (n == 0) return bytes;
    bytes.append(block.data(), static_cast<std::size_t>(n));
    require_size(bytes.size());
  }
}

void sync_directory(const std::filesystem::path& directory) {
  const auto& path = directory.empty() ? std::filesystem::path(".") : directory;
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) throw_errno(path.string());
}

namespace {

void write_all(int fd, std::string_view bytes, const std::string& name) {
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_errno(name);
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

void require_replaceable(const std::filesystem::path& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0) {
    const std::filesystem::path folder = path.parent_path();
    if (errno != ENOENT || (!folder.empty() && ::access(folder.c_str(), F_OK) != 0)) {
      throw_errno(path.string());
    }
    return;
  }
  if (S_ISREG(there.st_mode)) return;
  const char* what = S_ISDIR(there.st_mode)    ? "a folder"
                     : S_ISLNK(there.st_mode)  ? "a link"
                     : S_ISFIFO(there.st_mode) ? "a pipe"
                     : S_ISSOCK(there.st_mode) ? "a socket"
                                               : "a device";
  throw Error(Fault::host, cat(path.string(), ": is ", what,
                               ", and a file would take its place; give the output another name"));
}

void write_new_file(const std::filesystem::path& path, std::string_view bytes) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) throw_errno(path.string());
  write_all(fd.get(), bytes, path.string());
}

namespace {

enum class Sync { file, nothing };

// 0, or an error number; EEXIST where `to` is there and is not to be replaced. `file` is open as
// `from`.
int rename_file(int file, const std::string& from, const std::filesystem::path& to,
                IfExists if_exists) {
  const auto failure = [](long result) { return result == 0 ? 0 : errno; };
  int failed = 0;
  if (if_exists == IfExists::replace) {
    failed = failure(::rename(from.c_str(), to.c_str()));
  } else {
    failed = failure(
        ::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE));
    // NFS knows no flags; a link replaces nothing either.
    if (failed == EINVAL || failed == ENOSYS) {
      failed = failure(::link(from.c_str(), to.c_str()));
      if (failed == 0 || (failed == EEXIST && is_same_file(file, to)))
        failed = failure(::unlink(from.c_str()));
    }
  }
  return failed == ENOENT && is_same_file(file, to) ? 0 : failed;
}

// False: it is there, and is not to be replaced.
bool write_by_rename(const std::filesystem::path& path, std::string_view bytes, IfExists if_exists,
                     Sync sync) {
  require_replaceable(path);
  std::string temporary = path.parent_path() / unfinished_name("XXXXXX");
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) throw_errno(path.string());
  struct Remove {
    std::string& path;
    ~Remove() {
      if (!path.empty()) ::unlink(path.c_str());
    }
  } remove{temporary};

  write_all(fd.get(), bytes, path.string());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd.get(), 0666 & ~mask) != 0) throw_errno(path.string());
  if (sync == Sync::file && ::fsync(fd.get()) != 0) throw_errno(path.string());

  if (const int failed = rename_file(fd.get(), temporary, path, if_exists); failed != 0) {
    if (failed == EEXIST) return false;
    errno = failed;
    throw_errno(path.string());
  }
  temporary.clear();
  return true;
}

}  // namespace

bool write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           IfExists if_exists) {
  if (!write_by_rename(path, bytes, if_exists, Sync::file)) return false;
  sync_directory(path.parent_path());
  return true;
}

void replace_file(const std::filesystem::path& path, std::string_view bytes) {
  write_by_rename(path, bytes, IfExists::replace, Sync::nothing);
}

namespace {

// ld.so(8), "Dynamic string tokens": such a word in the path of a library is replaced, and nothing
// escapes it. Empty: there is none.
std::string linker_word(std::string_view path) {
  for (std::size_t at = 0; (at = path.find('$', at)) != path.npos; ++at) {
    const std::string_view rest = path.substr(at + 1);
    for (const std::string_view word : {"ORIGIN", "LIB", "PLATFORM"}) {
      if (rest.starts_with(cat("{", word, "}"))) return cat("${", word, "}");
      const bool ends = rest.size() <= word.size() || rest[word.size()] == '/';
      if (rest.starts_with(word) && ends) return cat("$", word);
    }
  }
  return "";
}

}  // namespace

std::filesystem::path library_directory() {
  if (const char* given = std::getenv("KJUDGE_LIBRARY_DIR")) return given;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe");
  const auto folder = executable.parent_path().parent_path();
  if (const std::string word = linker_word(folder.native()); !word.empty()) {
    throw Error(Fault::usage, cat("kjudge lies in ", folder.string(), ", and the dynamic linker ",
                                  "takes ", word, " in a path for a word of its own; move it"));
  }
  return folder / "lib" / "kjudge";
}

}  // namespace kjudge
