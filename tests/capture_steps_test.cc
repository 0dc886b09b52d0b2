// SPDX-License-Identifier: Apache-2.0
#include "judge/capture_steps.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "file.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr double kNone = -1, kEver = 1e9;

struct Process {
  TempDir folder{"kjudge-steps"};
  fs::path file = folder.path() / "steps";

  CaptureSteps steps(double prepare_s, double capture_s) const {
    ChallengeLimits limits;
    limits.prepare_s = prepare_s;
    limits.capture_s = capture_s;
    return CaptureSteps(file, limits, "submission.py", {"a", "b"});
  }
  void tell(std::uintmax_t step) const {
    std::ofstream(file, std::ios::app).close();
    fs::resize_file(file, step);
  }
};

bool is_of(const CaptureSteps& steps, std::string_view words) {
  return steps.message().starts_with(words);
}

}  // namespace

TEST_CASE("each step of a capture is held to its own limit, and named") {
  const Process process;
  CaptureSteps steps = process.steps(kNone, kNone);
  CHECK(steps.in_time());  // nothing of the contestant's runs yet
  CHECK(steps.phases().empty());
  const char* const names[] = {"import of submission.py did not", "prepare did not",
                               "kernel_fn of shape a did not", "kernel_fn of shape b did not"};
  for (std::uintmax_t step = 1; step <= 4; ++step) {
    process.tell(step);
    CHECK_FALSE(steps.in_time());
    CHECK(is_of(steps, names[step - 1]));
  }
  process.tell(5);
  CHECK(steps.in_time());  // the export's limit is kjudge's own
  CHECK(is_of(steps, "the export of the recording did not"));
  const std::vector<Phase> phases = steps.phases();
  REQUIRE(phases.size() == 4);
  CHECK(phases[2].name == "capture");
}

TEST_CASE("import and prepare share a limit, and all shapes do") {
  const Process process;
  CaptureSteps steps = process.steps(kEver, kNone);
  process.tell(1);
  CHECK(steps.in_time());
  process.tell(2);
  CHECK(steps.in_time());
  CHECK(steps.phases().size() == 2);
  process.tell(4);
  CHECK_FALSE(steps.in_time());
}

TEST_CASE("a process that lies about its steps gains no step back, and nothing of it is followed") {
  const Process process;
  CaptureSteps steps = process.steps(kEver, kNone);
  process.tell(3);
  CHECK_FALSE(steps.in_time());
  for (const std::uintmax_t told : {0, 1, 2}) {
    process.tell(told);
    CHECK_FALSE(steps.in_time());
  }
  fs::remove(process.file);
  CHECK_FALSE(steps.in_time());
  const fs::path other = process.folder.path() / "other";
  std::ofstream(other) << "12345";
  fs::create_symlink(other, process.file);
  CHECK_FALSE(steps.in_time());
  CHECK(is_of(steps, "kernel_fn of shape a"));
  fs::remove(process.file);
  REQUIRE(::mkfifo(process.file.c_str(), 0600) == 0);
  CHECK_FALSE(steps.in_time());
  fs::remove(process.file);
  process.tell(std::uintmax_t{1} << 40);
  CHECK(steps.in_time());
  CHECK(is_of(steps, "the export"));
}

}  // namespace kjudge
