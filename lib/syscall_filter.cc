// SPDX-License-Identifier: Apache-2.0
#include "syscall_filter.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "error.h"

namespace kjudge {
namespace {

// libseccomp returns -errno.
void check(int result, std::string_view what) {
  if (result >= 0) return;
  errno = -result;
  throw_errno(cat("seccomp filter: ", what));
}

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

}  // namespace

SyscallFilter::SyscallFilter(Otherwise otherwise)
    : context_(
          ::seccomp_init(otherwise == Otherwise::allow ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS)) {
  if (context_ == nullptr) throw Error(Fault::host, "seccomp filter: libseccomp cannot make one");
  check(::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "other ABIs");
  // A binary tree instead of a list. Older than libseccomp 2.5 it stays a list.
  ::seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2);
}

SyscallFilter::~SyscallFilter() { ::seccomp_release(context_); }

void SyscallFilter::rule(std::uint32_t action, const char* call,
                         std::initializer_list<Argument> arguments) {
  const int number = ::seccomp_syscall_resolve_name(call);
  if (number == __NR_SCMP_ERROR) return;
  std::vector<scmp_arg_cmp> compared;
  for (const Argument& argument : arguments) {
    compared.push_back(SCMP_CMP(argument.index, SCMP_CMP_MASKED_EQ, argument.mask, argument.value));
  }
  check(::seccomp_rule_add_array(context_, action, number, static_cast<unsigned>(compared.size()),
                                 compared.data()),
        call);
}

void SyscallFilter::allow(Names calls) {
  for (const char* call : calls) rule(SCMP_ACT_ALLOW, call, {});
}

void SyscallFilter::allow(const char* call, std::initializer_list<Argument> arguments) {
  rule(SCMP_ACT_ALLOW, call, arguments);
}

void SyscallFilter::refuse(Names calls, int error) {
  for (const char* call : calls) rule(SCMP_ACT_ERRNO(static_cast<unsigned>(error)), call, {});
}

void SyscallFilter::refuse(const char* call, Argument argument, int error) {
  rule(SCMP_ACT_ERRNO(static_cast<unsigned>(error)), call, {argument});
}

void SyscallFilter::refuse_from(const char* call, unsigned index, std::uint64_t least, int error) {
  const int number = ::seccomp_syscall_resolve_name(call);
  if (number == __NR_SCMP_ERROR) return;
  check(::seccomp_rule_add(context_, SCMP_ACT_ERRNO(static_cast<unsigned>(error)), number, 1,
                           SCMP_CMP(index, SCMP_CMP_GE, least)),
        call);
}

void SyscallFilter::refuse_kernel_surface() {
  refuse({"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
          "pidfd_getfd", "kcmp"},
         EPERM);
  refuse({"add_key", "keyctl", "request_key"}, EPERM);
  refuse({"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
          "io_uring_register", "fanotify_init", "lookup_dcookie", "open_by_handle_at"},
         EPERM);
  refuse({"mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount",
          "fspick", "open_tree", "move_mount", "mount_setattr", "unshare", "setns"},
         EPERM);
  refuse({"acct",         "adjtimex",      "clock_adjtime", "clock_settime", "delete_module",
          "finit_module", "init_module",   "ioperm",        "iopl",          "kexec_file_load",
          "kexec_load",   "modify_ldt",    "nfsservctl",    "quotactl",      "quotactl_fd",
          "reboot",       "setdomainname", "sethostname",   "settimeofday",  "swapoff",
          "swapon",       "syslog",        "vhangup",       "vm86",          "vm86old"},
         EPERM);
  // A filter cannot look into clone3's structure; without it glibc falls back to clone.
  refuse({"clone3"}, ENOSYS);
  for (const std::uint64_t flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
                                   CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    refuse("clone", {0, flag, flag}, EPERM);
  }
  // Characters into the terminal's input queue. The kernel looks at 32 bits.
  refuse("ioctl", {1, 0xffffffff, TIOCSTI}, EPERM);
  refuse("ioctl", {1, 0xffffffff, TIOCLINUX}, EPERM);
}

void SyscallFilter::refuse_other_families() {
  static_assert(AF_UNIX == 1 && AF_INET == 2 && AF_INET6 == 10);
  for (const char* call : {"socket", "socketpair"}) {
    for (std::uint64_t family : {0, 3, 4, 5, 6, 7, 8, 9}) {
      refuse(call, {0, kAllBits, family}, EAFNOSUPPORT);
    }
    refuse_from(call, 0, AF_INET6 + 1, EAFNOSUPPORT);
  }
}

Fd SyscallFilter::program() const {
  Fd file(::memfd_create("kjudge-filter", MFD_CLOEXEC));
  if (!file.valid()) throw_errno("memory for a seccomp filter");
  check(::seccomp_export_bpf(context_, file.get()), "export");
  if (::lseek(file.get(), 0, SEEK_SET) != 0) throw_errno("seccomp filter");
  return file;
}

void SyscallFilter::load() const {
  check(::seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1), "all threads");
  check(::seccomp_load(context_), "load");
}

}  // namespace kjudge
