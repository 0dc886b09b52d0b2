// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kjudge {

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t processes = 0;  // threads count
};

// A control group for one process and all it starts, in each hierarchy of v1 or v2 that lets this
// user have one: below this process's own group, or beside it where v2 delegates that. Whatever
// hierarchy does not, limits nothing; having none is no error.
class Cgroup {
 public:
  explicit Cgroup(const CgroupLimits& limits);
  // Kills what is in it still; then it is gone.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // A process that writes "0" to each of these files is in it.
  const std::vector<std::filesystem::path>& procs() const { return procs_; }
  // Processes in it that the system has killed for want of memory; nullopt: it does not tell.
  std::optional<std::uint64_t> memory_kills() const;
  // "cgroup v1: memory, pids"; empty without any.
  std::string describe() const;

 private:
  bool add(const std::filesystem::path& parent, const std::vector<std::string>& limited);

  std::string name_;
  std::vector<std::filesystem::path> folders_, procs_;
  std::vector<std::string> limited_;
  int version_ = 0;
};

}  // namespace kjudge
