// SPDX-License-Identifier: Apache-2.0

// Each driver call of a replay fails, in the supervisor and in either worker: a verdict or an error
// that names the call, no hang, nothing left, and never a wrong result accepted. The processes of a
// capture: tests/cli/failing_driver.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "process.h"
#include "replay/contest.h"

using namespace kjudge;

namespace {

// Undoes something, where nobody waits for the answer any more.
bool fails_harmlessly(const std::string& call) {
  constexpr std::array calls = {
      "cuMemUnmap",     "cuMemAddressFree",          "cuMemRelease",    "cuMemFreeHost",
      "cuGraphDestroy", "cuGraphExecDestroy",        "cuModuleUnload",  "cuStreamDestroy",
      "cuEventDestroy", "cuDevicePrimaryCtxRelease", "cuCtxSynchronize"};

  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

struct Call {
  std::string process, name;
  auto operator<=>(const Call&) const = default;
};

struct Outcome {
  std::optional<ExitStatus> status;
  std::string text;
  std::map<Call, int> most;  // calls of one process, of each kind of process
  bool failed = false;       // a fault was met
};

struct FailingContest : Contest {
  FailingContest() : Contest(DriverKind::host, {5000}) {}

  Outcome judge(const std::filesystem::path& submission, const std::string& fault) {
    const auto trace = folder().path() / "trace";
    std::filesystem::remove(trace);
    ChildOptions child;
    child.program = KJUDGE_TEST_SUPERVISOR;
    child.arguments = {reference, baseline, submission};
    child.environment = {{"KJUDGE_HOST_FAULT", fault}, {"KJUDGE_HOST_TRACE", trace.string()}};
    // Long enough that only what hangs meets it.
    const Finished finished = run_to_end(child, std::chrono::seconds(120), 1 << 16);
    Outcome outcome{finished.status, finished.output, {}, false};
    std::ifstream lines(trace);
    std::map<std::pair<Call, std::string>, int> counts;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Call call;
      std::string pid, error;
      words >> call.process >> pid >> call.name >> error;
      outcome.most[call] = std::max(outcome.most[call], ++counts[{call, pid}]);
      outcome.failed = outcome.failed || !error.empty();
    }
    return outcome;
  }

  const std::filesystem::path reference = make({{"reference"}}, true), baseline = make({{"right"}}),
                              right = make({{"right"}});
};

// The first, the second, the last and one between; of these one in turn, unless KJUDGE_TEST_WALK is
// "all".
std::vector<int> walked(int last, int turn) {
  std::vector<int> ns;
  for (const int n : {1, 2, (last + 2) / 2, last}) {
    if (n <= last && (ns.empty() || n > ns.back())) ns.push_back(n);
  }
  const char* asked = std::getenv("KJUDGE_TEST_WALK");
  if (asked != nullptr && std::string_view(asked) == "all") return ns;
  return {ns[static_cast<std::size_t>(turn) % ns.size()]};
}

constexpr std::array<const char*, 4> kErrors = {"UNKNOWN", "OUT_OF_MEMORY", "LAUNCH_FAILED",
                                                "INVALID_VALUE"};

void walk(const std::string& process,
          const std::function<void(const Call&, const Outcome&)>& check) {
  FailingContest contest;
  const Outcome whole = contest.judge(contest.right, "");
  REQUIRE_MESSAGE((whole.status && whole.status->ok()), whole.text);
  int turn = 0, walked_calls = 0;
  for (const auto& [call, last] : whole.most) {
    if (call.process != process) continue;
    ++walked_calls;
    for (const int n : walked(last, walked_calls)) {
      // The end of a kernel's parameters is said by an invalid value.
      const auto error =
          call.name == "cuFuncGetParamInfo" ? 0 : static_cast<std::size_t>(turn++ % 4);
      const std::string fault = cat(process, "/", call.name, ":", n, ":", kErrors[error]);
      CAPTURE(fault);
      const Outcome outcome = contest.judge(contest.right, fault);
      REQUIRE_MESSAGE(outcome.status, "it hangs");
      CHECK_MESSAGE(outcome.status->signal == 0, outcome.text);
      CHECK(children_of_ours() == 0);
      // At the end of the supervisor nothing is current any more, whatever the driver says.
      const bool harmless =
          fails_harmlessly(call.name) || (call.name == "cuCtxSetCurrent" && n == last);
      if (!outcome.failed || (outcome.status->ok() && harmless)) {
        CHECK_MESSAGE(outcome.status->ok(), outcome.text);
        continue;
      }
      CHECK_MESSAGE(!outcome.status->ok(), outcome.text);
      const bool named = call.name == "cuGetProcAddress" ||
                         outcome.text.find(call.name + ": CUDA_ERROR_") != std::string::npos;
      CHECK_MESSAGE(named, outcome.text);
      check(call, outcome);
    }
  }
  CHECK(walked_calls > 30);
}

}  // namespace

TEST_CASE("a driver call that fails in the supervisor is the judge's error") {
  walk("supervisor", [](const Call&, const Outcome& outcome) {
    // What a failed launch says may be the reference's doing.
    const bool reference = outcome.text.starts_with("package: ") &&
                           outcome.text.find("reference.py") != std::string::npos &&
                           outcome.text.find("LAUNCH_FAILED") != std::string::npos;
    CHECK_MESSAGE((outcome.text.starts_with("device: ") || reference ||
                   outcome.text.starts_with("out_of_memory: ")),
                  outcome.text);
  });
}

TEST_CASE("a driver call that fails in the baseline's worker is not the submission's fault") {
  walk("worker-baseline", [](const Call&, const Outcome& outcome) {
    const bool kernels = outcome.text.starts_with("package: baseline.py") &&
                         outcome.text.find("LAUNCH_FAILED") != std::string::npos;
    CHECK_MESSAGE((outcome.text.starts_with("device: ") || kernels), outcome.text);
  });
}

TEST_CASE("a driver call that fails in the submission's worker is a verdict or the judge's error") {
  walk("worker-submission", [](const Call&, const Outcome& outcome) {
    const std::string word = outcome.text.substr(0, outcome.text.find(':'));
    CHECK_MESSAGE((word == "runtime_error" || word == "out_of_memory" || word == "gpu_fault" ||
                   word == "device"),
                  outcome.text);
  });
}

TEST_CASE("no failing driver call makes a wrong result right") {
  FailingContest contest;
  const auto wrong = contest.make({{"wrong_last"}});
  const Outcome whole = contest.judge(wrong, "");
  REQUIRE_MESSAGE(whole.text.starts_with("wrong_result"), whole.text);
  // Nothing between making the inputs and comparing the outputs may be lost in silence.
  for (const char* call : {"cuLaunchKernel", "cuMemcpyDtoH", "cuMemcpyHtoDAsync",
                           "cuStreamSynchronize", "cuGraphLaunch", "cuMemsetD8Async"}) {
    const int last = whole.most.at({"supervisor", call});
    for (int n = std::max(1, last - 3); n <= last; ++n) {
      const Outcome outcome = contest.judge(wrong, cat("supervisor/", call, ":", n, ":UNKNOWN"));
      CAPTURE(outcome.text);
      REQUIRE(outcome.status);
      CHECK(!outcome.status->ok());
      CHECK((outcome.text.starts_with("wrong_result") || outcome.text.starts_with("device: ")));
    }
  }
}

namespace {

// For the workers that are started while it lives.
class FaultInWorkers {
 public:
  explicit FaultInWorkers(const std::string& fault) {
    ::setenv("KJUDGE_HOST_FAULT", fault.c_str(), 1);
  }
  ~FaultInWorkers() { ::unsetenv("KJUDGE_HOST_FAULT"); }
};

}  // namespace

TEST_CASE("a baseline without memory beside a larger submission is the submission's doing") {
  FailingContest contest;
  const FaultInWorkers fault("worker-baseline/cuMemCreate:1:OUT_OF_MEMORY");
  const auto larger = contest.make({.kernels = {"right"}, .unused_state = 64 << 20});
  const auto evaluation = contest.replay({contest.reference, contest.baseline, larger});
  CHECK(evaluation.verdict == Verdict::out_of_memory);
  CHECK_MESSAGE(evaluation.message.find("cuMemCreate") != std::string::npos, evaluation.message);
  CHECK_MESSAGE(evaluation.message.find("allocate less") != std::string::npos, evaluation.message);
  // Of the same size, it is not.
  CHECK_THROWS_AS(contest.replay({contest.reference, contest.baseline, contest.right}), Error);
}

TEST_CASE("a worker whose driver does not start is no verdict on the submission") {
  FailingContest contest;
  const FaultInWorkers fault("worker-submission/cuInit:1:NO_DEVICE");
  try {
    contest.replay({contest.reference, contest.baseline, contest.right});
    FAIL("nothing happened");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::device);
    const std::string message = error.what();
    CHECK_MESSAGE(message.find("cuInit: CUDA_ERROR_NO_DEVICE") != std::string::npos, message);
  }
}
