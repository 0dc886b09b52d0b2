// SPDX-License-Identifier: Apache-2.0

// A worker or the supervisor killed at any step: a verdict or an error, no hang, nothing left.
#include <dirent.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "process.h"
#include "replay/contest.h"

using namespace kjudge;

namespace {

class KillAt {
 public:
  explicit KillAt(const std::string& point) { ::setenv("KJUDGE_TEST_KILL", point.c_str(), 1); }
  ~KillAt() { ::unsetenv("KJUDGE_TEST_KILL"); }
};

// One short round of right answers.
struct QuickContest : Contest {
  QuickContest() : Contest(DriverKind::host, {5000}) {
    options.rounds = 1;
    options.pairs_per_round = 1;
  }
  const Bundles bundles{make({{"reference"}}, true), make({{"right"}}), make({{"right"}})};
};

std::size_t shared_memory_files() {
  const auto files = std::filesystem::directory_iterator("/dev/shm");
  return static_cast<std::size_t>(std::count_if(begin(files), end(files), [](const auto& file) {
    return file.path().filename().string().find("kjudge") != std::string::npos;
  }));
}

// Processes with MARK=value in their environment.
int processes_marked(const std::string& mark) {
  int count = 0;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream environment(process.path() / "environ", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(environment), {}};
    count += text.find(mark) != std::string::npos;
  }
  return count;
}

}  // namespace

TEST_CASE("the submission's worker killed at any step is its verdict at the second time") {
  const std::size_t files = shared_memory_files();
  QuickContest contest;
  for (const std::string& point : kill_points()) {
    if (point.find("submission:") != 0) continue;
    const KillAt kill(point);
    const auto start = std::chrono::steady_clock::now();
    const auto evaluation = contest.replay(contest.bundles);
    CHECK_MESSAGE(evaluation.verdict == Verdict::runtime_error, point, " ", evaluation.message);
    CHECK_MESSAGE(evaluation.message.find("SIGKILL") != std::string::npos, evaluation.message);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
    CHECK(children_of_ours() == 0);
  }
  CHECK(shared_memory_files() == files);
}

TEST_CASE("the baseline's worker killed at any step is the machine's fault at the second time") {
  QuickContest contest;
  for (const std::string& point : kill_points()) {
    if (point.find("baseline:") != 0) continue;
    const KillAt kill(point);
    try {
      contest.replay(contest.bundles);
      FAIL(point << ": nothing happened");
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::device);
      CHECK(std::string(error.what()).find("SIGKILL") != std::string::npos);
    }
    CHECK(children_of_ours() == 0);
  }
}

TEST_CASE("a worker killed once costs its round, which is taken again and says so") {
  QuickContest contest;
  contest.options.rounds = 2;
  for (const char* point : {"submission:armed:2", "baseline:copy:2", "submission:start:2"}) {
    const KillAt kill(point);
    const auto evaluation = contest.replay(contest.bundles);
    CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, point, " ", evaluation.message);
    const ShapeFacts& shape = evaluation.shapes.at(0);
    REQUIRE(shape.rounds.size() == 2);
    const Pair& first = shape.rounds[0].pairs.at(0);
    CHECK(first.voids >= 1);
    CHECK(first.void_causes.back().find("taken again") != std::string::npos);
  }
  const KillAt kill("submission:evict:1");  // while checking: nothing was measured yet
  CHECK(contest.replay(contest.bundles).verdict == Verdict::accepted);
}

TEST_CASE("the supervisor killed at any step leaves no process and no shared memory") {
  const std::size_t files = shared_memory_files();
  for (const std::string& point : kill_points()) {
    if (point.find("supervisor:") != 0) continue;
    const std::string mark = cat("KJUDGE_TEST_MARK=", ::getpid(), "-", point);
    ChildOptions options;
    options.program = KJUDGE_TEST_SUPERVISOR;
    options.environment["KJUDGE_TEST_KILL"] = point;
    options.environment["KJUDGE_TEST_MARK"] = mark.substr(mark.find('=') + 1);
    std::optional<ExitStatus> status;
    {
      Child supervisor(options);
      status = supervisor.wait(std::chrono::steady_clock::now() + std::chrono::seconds(120));
      REQUIRE_MESSAGE(status, point, ": it hangs");
      CHECK_MESSAGE(status->signal == SIGKILL, point, ": ", describe(*status));
      // Before Child's own cleaning: the workers are groups of their own.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (processes_marked(mark) > 0 && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      CHECK_MESSAGE(processes_marked(mark) == 0, point);
    }
  }
  CHECK(shared_memory_files() == files);
}
