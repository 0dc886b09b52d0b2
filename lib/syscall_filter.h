// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "file.h"

namespace kjudge {

// A seccomp filter: which system calls a process may make. Calls are given by name; what this
// processor or libseccomp does not have by that name is left out. Calls of another ABI (32 bit,
// x32) end the process, whatever the rules say.
class SyscallFilter {
 public:
  // What happens to calls that no rule names: they go on, or end the process with SIGSYS.
  enum class Otherwise { allow, kill };
  // A rule for a call whose argument has `value` in the bits of `mask`.
  struct Argument {
    unsigned index;
    std::uint64_t mask, value;
  };
  using Names = std::initializer_list<const char*>;

  explicit SyscallFilter(Otherwise otherwise);
  ~SyscallFilter();
  SyscallFilter(const SyscallFilter&) = delete;
  SyscallFilter& operator=(const SyscallFilter&) = delete;

  void allow(Names calls);
  void allow(const char* call, std::initializer_list<Argument> arguments);
  // The call fails with `error`, an errno.
  void refuse(Names calls, int error);
  void refuse(const char* call, Argument argument, int error);
  void refuse_from(const char* call, unsigned index, std::uint64_t least, int error);

  // What no submission needs and a sandbox of namespaces leaves open: other processes' memory,
  // keyrings, new namespaces and mounts, and the parts of the kernel where its faults are found.
  // New threads and processes are free, new namespaces with them are not.
  void refuse_kernel_surface();
  // Sockets but of the families AF_UNIX, AF_INET and AF_INET6.
  void refuse_other_families();

  // The filter as a file at its beginning, for bwrap --seccomp.
  Fd program() const;
  // For all threads of this process and what they start, for ever.
  void load() const;

 private:
  void rule(std::uint32_t action, const char* call, std::initializer_list<Argument> arguments);

  void* context_;
};

}  // namespace kjudge
