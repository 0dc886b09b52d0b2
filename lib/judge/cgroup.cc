// SPDX-License-Identifier: Apache-2.0
#include "judge/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "error.h"
#include "file.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "kjudge-";

// One write, which is how these files take a value.
bool set(const fs::path& file, const std::string& value) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() &&
         ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::vector<std::string> words_of(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Hierarchy {
  fs::path mount_point, own;  // own: of this process, below the mount point
  bool unified = false;       // v2
  std::string controllers;    // v1: ",memory,pids,"
};

// Where this process is in each hierarchy: /proc/self/cgroup has the groups, /proc/self/mounts
// where the hierarchies are.
std::vector<Hierarchy> hierarchies() {
  std::vector<Hierarchy> found;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device, point, type, options;
    fields >> device >> point >> type >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    found.push_back({point, point, type == "cgroup2", cat(",", options, ",")});
  }
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    for (Hierarchy& hierarchy : found) {
      const bool same =
          hierarchy.unified
              ? controllers.empty()
              : hierarchy.controllers.find(cat(",", controllers, ",")) != std::string::npos &&
                    !controllers.empty();
      const fs::path own = hierarchy.mount_point.string() + group;
      // In a container the group may be named as its host sees it.
      if (same && fs::exists(own / "cgroup.procs")) hierarchy.own = own;
    }
  }
  return found;
}

// What killed judges left: empty groups named after processes that are no more.
void sweep(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(parent, ignored)) {
    const std::string name = item.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const auto pid = static_cast<pid_t>(std::atoi(name.c_str() + kPrefix.size()));
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(item.path().c_str());
  }
}

}  // namespace

Cgroup::Cgroup(const CgroupLimits& limits) {
  static std::atomic<unsigned> count = 0;
  name_ = cat(kPrefix, ::getpid(), "-", ++count);
  const std::string memory = std::to_string(limits.memory_bytes);
  const std::string processes = std::to_string(limits.processes);
  for (const Hierarchy& hierarchy : hierarchies()) {
    if (!hierarchy.unified) {
      const bool is_memory = hierarchy.controllers.find(",memory,") != std::string::npos;
      const bool is_pids = hierarchy.controllers.find(",pids,") != std::string::npos;
      std::vector<std::string> limited;
      if (is_memory) limited.push_back("memory");
      if (is_pids) limited.push_back("pids");
      if (limited.empty() || !add(hierarchy.own, limited)) continue;
      version_ = 1;
      if (is_memory) set(folders_.back() / "memory.limit_in_bytes", memory);
      if (is_pids) set(folders_.back() / "pids.max", processes);
      continue;
    }
    // A group with processes of its own cannot give controllers to groups below it, unless it is
    // the root: so the nearest one above that does.
    for (fs::path parent = hierarchy.own;; parent = parent.parent_path()) {
      std::vector<std::string> limited = words_of(parent / "cgroup.subtree_control");
      std::erase_if(limited, [](const std::string& c) { return c != "memory" && c != "pids"; });
      if (!limited.empty() && add(parent, limited)) {
        version_ = 2;
        if (has(limited, "memory")) {
          set(folders_.back() / "memory.max", memory);
          set(folders_.back() / "memory.swap.max", "0");
          set(folders_.back() / "memory.oom.group", "1");
        }
        if (has(limited, "pids")) set(folders_.back() / "pids.max", processes);
        break;
      }
      if (parent == hierarchy.mount_point || !parent.has_relative_path()) break;
    }
  }
}

bool Cgroup::add(const fs::path& parent, const std::vector<std::string>& limited) {
  sweep(parent);
  const fs::path folder = parent / name_;
  if (::mkdir(folder.c_str(), 0755) != 0) return false;
  // A process needs the right to leave its old group too; whether it has it is known by trying.
  if (::access((folder / "cgroup.procs").c_str(), W_OK) != 0 ||
      ::access((parent / "cgroup.procs").c_str(), W_OK) != 0) {
    ::rmdir(folder.c_str());
    return false;
  }
  folders_.push_back(folder);
  procs_.push_back(folder / "cgroup.procs");
  limited_.insert(limited_.end(), limited.begin(), limited.end());
  return true;
}

Cgroup::~Cgroup() {
  for (const fs::path& folder : folders_) {
    set(folder / "cgroup.kill", "1");  // v2 since Linux 5.14
    // The end of a process is seen here a moment after it was reaped.
    for (int attempt = 0; ::rmdir(folder.c_str()) != 0 && errno == EBUSY && attempt < 5000;
         ++attempt) {
      for (const std::string& pid : words_of(folder / "cgroup.procs")) {
        ::kill(static_cast<pid_t>(std::atoi(pid.c_str())), SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

std::optional<std::uint64_t> Cgroup::memory_kills() const {
  for (const fs::path& folder : folders_) {
    for (const char* file : {"memory.events", "memory.oom_control"}) {  // v2, v1
      const std::vector<std::string> words = words_of(folder / file);
      const auto found = std::find(words.begin(), words.end(), "oom_kill");
      if (words.end() - found >= 2) return std::strtoull(found[1].c_str(), nullptr, 10);
    }
  }
  return std::nullopt;
}

std::string Cgroup::describe() const {
  if (folders_.empty()) return {};
  std::vector<std::string> sorted = limited_;
  std::sort(sorted.begin(), sorted.end());
  std::string names;
  for (const std::string& limited : sorted) names += cat(names.empty() ? "" : ", ", limited);
  return cat("cgroup v", version_, ": ", names);
}

}  // namespace kjudge
