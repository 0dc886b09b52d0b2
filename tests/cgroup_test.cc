// SPDX-License-Identifier: Apache-2.0
#include "judge/cgroup.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "process.h"

using namespace kjudge;

namespace {

// A shell in the group that runs `script`.
Finished in_group(const Cgroup& cgroup, const std::string& script) {
  std::vector<std::string> files;
  for (const auto& file : cgroup.procs()) files.push_back(file.string());
  ChildOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  options.before_exec = [&files] {
    for (const std::string& file : files) {
      const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0 || ::write(fd, "0", 1) != 1) return EPERM;
      ::close(fd);
    }
    return 0;
  };
  return run_to_end(options, std::chrono::seconds(60), 1 << 16);
}

}  // namespace

TEST_CASE("a process that kills itself is told from one that the system kills for memory") {
  Cgroup cgroup({std::uint64_t{64} << 20, 64});
  if (cgroup.describe().find("memory") == std::string::npos) {
    MESSAGE("no control group for memory here");
    return;
  }
  REQUIRE(cgroup.memory_kills() == 0);
  const Finished itself = in_group(cgroup, "kill -KILL $$");
  REQUIRE(itself.status);
  CHECK(itself.status->signal == SIGKILL);
  CHECK(cgroup.memory_kills() == 0);
  const Finished greedy = in_group(cgroup, "x=aaaaaaaa; while :; do x=$x$x; done");
  REQUIRE(greedy.status);
  CHECK(greedy.status->signal == SIGKILL);
  CHECK(cgroup.memory_kills().value_or(0) > 0);
  if (greedy.out_of_memory) CHECK(*greedy.out_of_memory);
}
