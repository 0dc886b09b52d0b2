// SPDX-License-Identifier: Apache-2.0
#include "replay/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "error.h"
#include "file.h"
#include "syscall_filter.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define KJ_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KJ_SANITIZED 1
#endif

namespace kjudge {
namespace {

// Younger than some linux/landlock.h.
constexpr std::uint64_t kAccessTruncate = 1u << 14, kAccessIoctl = 1u << 15;

bool wanted() {
#ifdef KJ_SANITIZED
  return false;
#else
  if (std::getenv("KJUDGE_HOST_TRACE") != nullptr) return false;  // a file to write
  const char* text = std::getenv("KJUDGE_WORKER_FILTER");
  return text == nullptr || std::string_view(text) != "off";
#endif
}

int landlock_version() {
  return static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

// All that this kernel can forbid.
std::uint64_t all_access(int version) {
  std::uint64_t access = (std::uint64_t{1} << 13) - 1;
  if (version >= 2) access |= std::uint64_t{1} << 13;  // rename and link between folders
  if (version >= 3) access |= kAccessTruncate;
  if (version >= 5) access |= kAccessIoctl;
  return access;
}

void keep_readable(const Fd& rules, const std::filesystem::path& path) {
  const Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return;  // then nothing needs it
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
  if (std::filesystem::is_directory(path)) beneath.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
  beneath.parent_fd = fd.get();
  if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
    throw_errno(path.string());
  }
}

}  // namespace

bool can_close_files() { return landlock_version() >= 1; }

void close_files(DriverKind driver) {
  if (!wanted() || driver != DriverKind::host || !can_close_files()) return;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = all_access(landlock_version());
  const Fd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!rules.valid()) throw_errno("landlock_create_ruleset");
  for (const char* path : {"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache",
                           "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo"}) {
    keep_readable(rules, path);
  }
  keep_readable(rules, library_directory());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    throw_errno("landlock_restrict_self");
  }
}

void close_calls(DriverKind driver) {
  if (!wanted()) return;
  if (driver == DriverKind::cuda) {
    SyscallFilter filter(SyscallFilter::Otherwise::allow);
    filter.refuse_kernel_surface();
    filter.refuse({"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4"},
                  EPERM);
    filter.refuse({"execve", "execveat", "fork", "vfork"}, EPERM);
    filter.refuse("clone", {0, CLONE_THREAD, 0}, EPERM);
    filter.load();
    return;
  }
  SyscallFilter filter(SyscallFilter::Otherwise::kill);
  // Memory and threads.
  filter.allow({"brk", "madvise", "mmap", "mprotect", "mremap", "munmap", "membarrier"});
  filter.allow({"exit", "exit_group", "futex", "rseq", "sched_getaffinity", "sched_yield",
                "set_robust_list", "getcpu", "gettid", "getpid"});
  filter.allow("clone", {{0, CLONE_THREAD, CLONE_THREAD}});
  filter.refuse({"clone3"}, ENOSYS);  // glibc falls back to clone, whose flags a filter can see
  // Time.
  filter.allow({"clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep",
                "restart_syscall"});
  // Signals, to itself.
  filter.allow({"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack"});
  const auto self = static_cast<std::uint64_t>(::getpid());
  for (const char* call : {"kill", "tgkill"}) filter.allow(call, {{0, 0xffffffff, self}});
  filter.allow("prctl", {{0, 0xffffffff, PR_SET_NAME}});
  // The one socket that it has, its messages' descriptors, and what a kernel prints.
  filter.allow({"close", "fcntl", "poll", "read", "recvmsg", "sendmsg", "write", "writev"});
  // Device memory, modules and the bundle.
  filter.allow(
      {"dup", "fallocate", "fstat", "ftruncate", "lseek", "memfd_create", "newfstatat", "pread64"});
  filter.allow("openat", {{2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY}});
  filter.allow({"getrandom", "sysinfo", "uname"});
  // The second step loads a filter.
  filter.allow("seccomp", {});
  filter.allow("prctl", {{0, 0xffffffff, PR_SET_NO_NEW_PRIVS}});
  filter.allow("prctl", {{0, 0xffffffff, PR_SET_PDEATHSIG}});
  filter.load();
}

void close_loading(DriverKind driver) {
  if (!wanted() || driver != DriverKind::host) return;
  SyscallFilter filter(SyscallFilter::Otherwise::allow);
  // A C library that looks how many processors there are has another way when this fails.
  filter.refuse({"fallocate", "ftruncate", "memfd_create", "newfstatat", "openat", "seccomp"},
                EACCES);
  filter.refuse_from("write", 0, 3, EACCES);
  filter.load();
}

}  // namespace kjudge
