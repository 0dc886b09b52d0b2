// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "error.h"

using namespace kjudge;
using namespace std::chrono_literals;

namespace {

Finished shell(const std::string& script, std::chrono::duration<double> limit = 20s,
               std::size_t output_limit = 1 << 20) {
  ChildOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  options.environment = {{"KJ_ADDED", "yes"}, {"HOME", ""}};
  options.directory = "/tmp";
  return run_to_end(options, limit, output_limit);
}

}  // namespace

TEST_CASE("a child's output, status, environment and directory") {
  const auto finished =
      shell("echo out; echo err >&2; echo $KJ_ADDED ${HOME-unset} $(pwd); exit 3");
  REQUIRE(finished.status);
  CHECK(finished.status->code == 3);
  CHECK(finished.output == "out\nerr\nyes unset /tmp\n");
  CHECK(describe(*finished.status) == "exit status 3");
}

TEST_CASE("a child killed by a signal is described") {
  const auto finished = shell("kill -SEGV $$");
  REQUIRE(finished.status);
  CHECK(describe(*finished.status) == "killed by SIGSEGV (Segmentation fault)");
}

TEST_CASE("a child past its limit is killed with all it started") {
  const auto finished = shell("sleep 1000 & echo $!; sleep 1000", 300ms);
  CHECK_FALSE(finished.status);
  const pid_t grandchild = std::stoi(finished.output);
  bool gone = false;
  for (int i = 0; i < 200 && !gone; ++i) {
    gone = ::kill(grandchild, 0) != 0;
    std::this_thread::sleep_for(10ms);
  }
  CHECK(gone);
}

TEST_CASE("a daemon in a session of its own ends with the child that started it") {
  const auto finished = shell("setsid sh -c 'echo $$; exec sleep 1000' & sleep 0.3");
  REQUIRE(finished.status);
  CHECK(finished.status->ok());
  CHECK(::kill(std::stoi(finished.output), 0) != 0);
  CHECK(errno == ESRCH);
}

TEST_CASE("a daemon that holds the pipe does not hold up the end") {
  const auto finished = shell("sleep 1000 & echo done");
  REQUIRE(finished.status);
  CHECK(finished.status->ok());
  CHECK(finished.output == "done\n");
}

TEST_CASE("output over the limit keeps its first and last halves") {
  const auto finished = shell("echo first; yes | head -c 1000000; echo last", 20s, 1000);
  CHECK(finished.output.substr(0, 6) == "first\n");
  CHECK(finished.output.substr(finished.output.size() - 5) == "last\n");
  CHECK(finished.output.find("bytes left out") != std::string::npos);
  CHECK(finished.output.size() < 1100);
}

TEST_CASE("a program that is not there is an error that names it, and leaves no zombie") {
  ChildOptions options;
  options.program = "/nowhere/program";
  CHECK_THROWS_WITH_AS(Child{options}, doctest::Contains("/nowhere/program"), Error);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

// Boost 1.81's bind_fd crashed every optimized build that gave a child more than 0 to 2.
TEST_CASE(
    "descriptors go to the child under the numbers asked for, the same and swapped ones too") {
  int first[2], second[2];
  REQUIRE(::pipe(first) == 0);
  REQUIRE(::pipe(second) == 0);
  const Fd read_first(first[0]), write_first(first[1]), read_second(second[0]),
      write_second(second[1]);
  const std::string one = std::to_string(write_first.get()),
                    two = std::to_string(write_second.get());
  ChildOptions options;
  options.program = "/bin/bash";
  options.arguments = {"-c", cat("echo a >&", one, "; echo b >&", two, "; echo c >&9")};
  options.descriptors = {{write_first.get(), write_second.get()},
                         {write_second.get(), write_first.get()},
                         {write_first.get(), 9}};
  const auto finished = run_to_end(options, 20s, 1 << 16);
  REQUIRE(finished.status);
  CHECK(finished.status->ok());
  char text[16] = {};
  CHECK(::read(read_first.get(), text, sizeof text - 1) == 4);
  CHECK(std::string(text) == "b\nc\n");
  CHECK(::read(read_second.get(), text, sizeof text - 1) == 2);
  CHECK(std::string(text).substr(0, 2) == "a\n");
}
