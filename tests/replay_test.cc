// SPDX-License-Identifier: Apache-2.0

// Whole evaluations, with real workers, on every driver there is.
#include "replay/replay.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "replay/contest.h"
#include "replay/supervisor_device.h"

using namespace kjudge;

namespace {

std::string summary(const Evaluation& evaluation) {
  return cat(name(evaluation.verdict), ": ", evaluation.message);
}

// One short round: enough for a verdict.
void be_quick(Contest& contest) {
  contest.options.rounds = 1;
  contest.options.pairs_per_round = 1;
}

Evaluation judge_quickly(DriverKind kind, const ArmCode& submission) {
  Contest contest(kind);
  be_quick(contest);
  return contest.judge(submission);
}

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* variable, const std::string& value) : variable_(variable) {
    ::setenv(variable, value.c_str(), 1);
  }
  ~EnvironmentVariable() { ::unsetenv(variable_); }

 private:
  const char* variable_;
};

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a right submission is accepted, with all facts") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind);
    int reports = 0;
    double last = 0;
    const auto evaluation =
        contest.judge({{"right"}}, {{"slow"}}, {{"reference"}}, [&](const Progress& progress) {
          ++reports;
          CHECK(progress.done >= last);
          last = progress.done;
        });
    CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
    CHECK(evaluation.message.empty());
    CHECK(reports > 60);
    REQUIRE(evaluation.shapes.size() == 3);
    for (const ShapeFacts& shape : evaluation.shapes) {
      CHECK(shape.verdict == Verdict::accepted);
      CHECK(shape.rounds.size() == (shape.timed ? 6 : 0));
      int first_baseline = 0;
      std::vector<double> ratios;
      for (const RoundFacts& round : shape.rounds) {
        CHECK(round.pairs.size() == 5);
        CHECK(round.null_graph_ns > 0);
        CHECK(round.clock_tick_ns > 0);
        int large = 0;
        for (const Pair& pair : round.pairs) {
          first_baseline += pair.first == ArmName::baseline ? 1 : -1;
          large += pair.regime == "large";
          ratios.push_back(pair.ratio());
          for (const ArmTimes& arm : pair.arms) {
            CHECK(arm.replays.size() == static_cast<std::size_t>(shape.replays_per_arm));
            for (const Clocks& clocks : arm.replays) {
              CHECK(clocks.event_ns > 0);
              CHECK(clocks.event_ns <= clocks.stamp_ns + round.clock_tick_ns + 1);
              CHECK(clocks.stamp_ns <= clocks.host_ns);
              CHECK(clocks.host_ns <= clocks.supervisor_ns);
            }
          }
        }
        CHECK(large == 2);
      }
      if (!shape.timed) continue;
      CHECK(first_baseline == 0);
      std::sort(ratios.begin(), ratios.end());
      CHECK(ratios[ratios.size() / 2] > 1.5);
    }
    double all = 0;
    for (const Phase& phase : evaluation.phases) all += phase.seconds;
    CHECK(all > 0);
  });
}

TEST_CASE("a round has the clock it left a GPU at; the host driver has none") {
  on_each_driver([](DriverKind kind) {
    CAPTURE(name(kind));
    const Evaluation evaluation = judge_quickly(kind, {{"right"}});
    REQUIRE_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
    for (const ShapeFacts& shape : evaluation.shapes) {
      for (const RoundFacts& round : shape.rounds) {
        CHECK(round.clock_mhz.has_value() == (kind == DriverKind::cuda));
        if (round.clock_mhz) CHECK((*round.clock_mhz > 100 && *round.clock_mhz < 5000));
        if (kind == DriverKind::host) CHECK((!round.power_w && !round.throttle_reasons));
      }
    }
  });
}

TEST_CASE("hot replays are timed, and memory for evictions is only where they are") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind);
    be_quick(contest);
    contest.challenge.cache = CacheMode::hot;
    const Evaluation evaluation = contest.judge({{"right"}});
    CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
    SupervisorDevice side(contest.driver(), 0, 0, true);
    side.make_eviction(CacheMode::hot);
    CHECK(side.eviction().size() == kRegionGranule);
    side.make_eviction(CacheMode::cold);
    CHECK(side.eviction().size() > kRegionGranule);
  });
}

TEST_CASE("a bundle is replayed once in this process, and only what the challenge has") {
  on_each_driver([](DriverKind kind) {
    CAPTURE(name(kind));
    Contest contest(kind);
    const BundleReader bundle(contest.make({{"right"}}));
    const std::string shape = contest.challenge.shapes.front().name;
    CHECK_NOTHROW(replay_once(contest.driver(), contest.challenge, bundle, shape, 0));
    CHECK_THROWS_AS(replay_once(contest.driver(), contest.challenge, bundle, "none", 0), Error);
  });
}

TEST_CASE("wrong outputs are found, and all shapes they are in") {
  on_each_driver([](DriverKind kind) {
    const auto evaluation = judge_quickly(kind, {{"wrong_last"}});
    CHECK_MESSAGE(evaluation.verdict == Verdict::wrong_result, summary(evaluation));
    CHECK(evaluation.message.find("1 of 4097 elements differs; first at [4096]") !=
          std::string::npos);
    REQUIRE(evaluation.shapes.size() == 3);
    for (const ShapeFacts& shape : evaluation.shapes) {
      CHECK(shape.verdict == Verdict::wrong_result);
      REQUIRE(shape.failure);
      CHECK(shape.failure->output == "out");
      CHECK(shape.failure->mismatched == 1);
      CHECK(shape.failure->first_index + 1 == shape.failure->elements);
      CHECK(shape.failure->out - shape.failure->expected == doctest::Approx(1).epsilon(1e-3));
    }
  });
}

TEST_CASE("an answer that is right on the capture's inputs only is wrong") {
  on_each_driver([](DriverKind kind) {
    const auto evaluation = judge_quickly(kind, {{"wrong_when_large"}});
    CHECK_MESSAGE(evaluation.verdict == Verdict::wrong_result, summary(evaluation));
    CHECK(evaluation.shapes.at(0).failure.value().regime == "large");
  });
}

TEST_CASE("unwritten outputs are wrong and called so") {
  on_each_driver([](DriverKind kind) {
    const auto evaluation = judge_quickly(kind, {{"unwritten_tail"}});
    CHECK_MESSAGE(evaluation.verdict == Verdict::wrong_result, summary(evaluation));
    CHECK(evaluation.shapes.at(0).failure.value().unwritten == 10);
    CHECK(evaluation.message.find("unwritten output") != std::string::npos);
  });
}

namespace {

// Judges with these checks in the place of `close`.
Evaluation judge_with(DriverKind kind, const std::vector<Check>& checks, const ArmCode& submission,
                      const ArmCode& reference = {{"reference"}},
                      const ArmCode& baseline = {{"right"}}) {
  Contest contest(kind);
  be_quick(contest);
  for (Shape& shape : contest.challenge.shapes) shape.outputs[0].checks = checks;
  return contest.judge(submission, baseline, reference);
}

Check measured(CheckKind kind, double limit) {
  Check check{kind};
  check.limit = limit;
  return check;
}

}  // namespace

TEST_CASE("checks that measure rows accept and refuse, and say where") {
  on_each_driver([](DriverKind kind) {
    const std::vector<Check> checks = {measured(CheckKind::cosine, 0.9999),
                                       measured(CheckKind::rel_l2, 1e-6)};
    const auto right = judge_with(kind, checks, {{"right"}});
    CHECK_MESSAGE(right.verdict == Verdict::accepted, summary(right));
    const auto wrong = judge_with(kind, checks, {{"wrong_last"}});
    CHECK_MESSAGE(wrong.verdict == Verdict::wrong_result, summary(wrong));
    CHECK(wrong.message.find("1 of 1 row is wrong; worst row: relative L2 error ") !=
          std::string::npos);
    for (const ShapeFacts& shape : wrong.shapes) {
      const CheckFailure& failure = shape.failure.value();
      CHECK(failure.check == "rel_l2");
      CHECK(failure.first_index + 1 == failure.elements);
      CHECK(failure.mismatched == 1);
      CHECK(failure.out - failure.expected == doctest::Approx(1).epsilon(1e-3));
      CHECK(failure.worst_abs == doctest::Approx(1).epsilon(1e-3));
      CHECK(failure.rows.value().worst > 1e-6);
      CHECK(failure.rows.value().limit == 1e-6);
    }
    const auto unwritten = judge_with(kind, checks, {{"unwritten_tail"}});
    CHECK_MESSAGE(unwritten.verdict == Verdict::wrong_result, summary(unwritten));
    CHECK(unwritten.shapes.at(0).failure.value().unwritten == 10);
  });
}

TEST_CASE("checks of elements against their row, and of codes, accept and refuse") {
  on_each_driver([](DriverKind kind) {
    Check bound{CheckKind::row_bound, 1e-6};
    bound.c = 1e-6;
    for (const Check& check : {bound, Check{CheckKind::codes}}) {
      const auto right = judge_with(kind, {check}, {{"right"}});
      CHECK_MESSAGE(right.verdict == Verdict::accepted, summary(right));
      const auto wrong = judge_with(kind, {check}, {{"wrong_last"}});
      CHECK_MESSAGE(wrong.verdict == Verdict::wrong_result, summary(wrong));
      const CheckFailure& failure = wrong.shapes.at(0).failure.value();
      CHECK(failure.check == name(check.kind));
      CHECK(failure.mismatched == 1);
      CHECK(failure.first_index + 1 == failure.elements);
      CHECK(failure.codes.has_value() == (check.kind == CheckKind::codes));
      if (failure.codes) CHECK(failure.codes->beyond == 1);
    }
  });
}

TEST_CASE("a submission may be as far off as the baseline on the same inputs, times a factor") {
  on_each_driver([](DriverKind kind) {
    const auto judged = [&](double factor, double floor, const char* baseline) {
      Check check{CheckKind::versus_baseline};
      check.factor = factor;
      check.floor = floor;
      // Outputs that are not those of the recording are compared before any pair.
      const ArmCode submission{{"sloppier"}, ArmCode::nothing, false, false, ""};
      return judge_with(kind, {check}, submission, {{"reference"}}, {{baseline}});
    };
    for (const auto& right : {judged(2.5, 1e-9, "sloppy"), judged(1, 3e-4, "right")}) {
      CHECK_MESSAGE(right.verdict == Verdict::accepted, summary(right));
    }
    const auto wrong = judged(1.5, 1e-9, "sloppy");
    CHECK_MESSAGE(wrong.verdict == Verdict::wrong_result, summary(wrong));
    CHECK(wrong.message.find("relative L2 error 0.0002, allowed 0.00015") != std::string::npos);
    CHECK(wrong.message.find(" where the baseline has 0.0001;") != std::string::npos);
    const RowFailure& rows = wrong.shapes.at(0).failure.value().rows.value();
    CHECK(rows.baseline.value() == doctest::Approx(1e-4).epsilon(0.01));
    CHECK(rows.limit == doctest::Approx(1.5e-4).epsilon(0.01));
    CHECK(judged(1, 1e-9, "right").verdict == Verdict::wrong_result);
  });
}

namespace {

// The challenge is at fault: its reference gives only zeros.
void check_expects_zeros(Contest& contest, const ArmCode& arm, const ArmCode& reference) {
  try {
    contest.judge(arm, arm, reference);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::package);
    CHECK_MESSAGE(std::string(error.what()).find("every expected value is 0") != std::string::npos,
                  error.what());
  }
}

}  // namespace

TEST_CASE("a timed output that is expected to be all zeros is the author's mistake") {
  on_each_driver([](DriverKind kind) {
    for (const Check& check :
         {Check{CheckKind::close, 1e-5, 1e-5}, measured(CheckKind::rel_l2, 1e-6)}) {
      Contest contest(kind);
      std::erase_if(contest.challenge.shapes, [](const Shape& shape) { return !shape.timed; });
      for (Shape& shape : contest.challenge.shapes) shape.outputs[0].checks = {check};
      check_expects_zeros(contest, {{"right"}}, {{"zeros"}});
    }
  });
}

TEST_CASE("one element that is expected to be 0 now and then is chance, always 0 a mistake") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind, {1});
    std::erase_if(contest.challenge.shapes, [](const Shape& shape) { return !shape.timed; });
    contest.challenge.cache = CacheMode::hot;
    const ArmCode arm{{"right_rectified"}};
    // Half of the nominal inputs are below 0.
    const Evaluation judged = contest.judge(arm, arm, {{"rectified"}});
    CHECK_MESSAGE(judged.verdict == Verdict::accepted, summary(judged));
    for (Regime& regime : contest.challenge.shapes[0].regimes) {
      regime.generators = {{fill_uniform, -3, -2}};
    }
    check_expects_zeros(contest, arm, {{"rectified"}});
  });
}

TEST_CASE("faults are the submission's, with the kernel's name") {
  on_each_driver([](DriverKind kind) {
    for (const char* kernel : {"writes_input", "reads_null"}) {
      const auto evaluation = judge_quickly(kind, {{kernel}, ArmCode::nothing, false, false, ""});
      CHECK_MESSAGE(evaluation.verdict == Verdict::gpu_fault, summary(evaluation));
      CHECK(evaluation.message.find(kernel) != std::string::npos);
      CHECK(evaluation.message.find("ILLEGAL_ADDRESS") != std::string::npos);
      CHECK(evaluation.shapes.size() == 1);
    }
  });
}

TEST_CASE("a kernel that never ends is stopped at the replay's limit") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind);
    be_quick(contest);
    contest.challenge.limits.replay_s = 0.5;
    const auto start = std::chrono::steady_clock::now();
    const auto evaluation = contest.judge({{"never_ends"}, ArmCode::nothing, false, false, ""});
    CHECK_MESSAGE(evaluation.verdict == Verdict::timeout, summary(evaluation));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
    CHECK(children_of_ours() == 0);
  });
}

TEST_CASE("nothing a replay writes is there at the next") {
  on_each_driver([](DriverKind kind) {
    for (const ArmCode& code :
         {ArmCode{{"counts_in_state", "adds_one"}, ArmCode::state},
          ArmCode{{"counts_in_variable", "adds_one_to_variable"}, ArmCode::nothing, true}}) {
      const auto evaluation = judge_quickly(kind, code);
      CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
    }
    // That the variable would be seen is shown by not recording it.
    const auto evaluation = judge_quickly(
        kind, ArmCode{{"counts_in_variable", "adds_one_to_variable"}, ArmCode::nothing, false});
    CHECK(evaluation.verdict == Verdict::wrong_result);
  });
}

TEST_CASE("another shape's outputs cannot be written") {
  on_each_driver([](DriverKind kind) {
    const auto evaluation =
        judge_quickly(kind, {{"notes_elsewhere"}, ArmCode::other_output, false, false, ""});
    CHECK_MESSAGE(evaluation.verdict == Verdict::gpu_fault, summary(evaluation));
  });
}

TEST_CASE("chains of copies, memsets and joins are rebuilt") {
  on_each_driver([](DriverKind kind) {
    const auto evaluation = judge_quickly(kind, {{"memset", "right", "memcpy"}});
    CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
  });
}

TEST_CASE("an inout tensor is as filled at every replay") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind);
    contest.with_inout();
    be_quick(contest);
    const ArmCode code{{"uses_up_sum"}, ArmCode::inout};
    const auto evaluation = contest.judge(code, code, {{"reference_sum"}, ArmCode::inout});
    CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
  });
}

TEST_CASE("other bits within tolerance are accepted with a note") {
  on_each_driver([](DriverKind kind) {
    const auto evaluation = judge_quickly(kind, {{"jitters"}});
    CHECK_MESSAGE(evaluation.verdict == Verdict::accepted, summary(evaluation));
    CHECK(evaluation.message.find("not deterministic") != std::string::npos);
  });
}

TEST_CASE("a bundle that is not what the machine gives is no fault of the judge") {
  on_each_driver([](DriverKind kind) {
    for (const char* changed : {"registers", "parameters"}) {
      ArmCode code{{"right"}, ArmCode::nothing, false, false, changed};
      const auto evaluation = judge_quickly(kind, code);
      CHECK_MESSAGE(evaluation.verdict == Verdict::runtime_error, changed, summary(evaluation));
    }
    ArmCode code{{"right"}, ArmCode::nothing, false, false, "shape"};
    const auto evaluation = judge_quickly(kind, code);
    CHECK_MESSAGE(evaluation.verdict == Verdict::refused, summary(evaluation));
    if (kind == DriverKind::cuda) return;  // a cubin's kernels are checked with the bundle
    code.kernels = {"no_such_kernel"};
    code.changed = "";
    CHECK(judge_quickly(kind, code).verdict == Verdict::runtime_error);
  });
}

TEST_CASE("a baseline or reference that fails is the challenge's fault") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind);
    be_quick(contest);
    const ArmCode right{{"right"}};
    const auto fault = [&](const ArmCode& baseline, const ArmCode& reference) {
      try {
        contest.judge(right, baseline, reference);
      } catch (const Error& error) {
        return std::string(name(error.fault())) + ": " + error.what();
      }
      return std::string("none");
    };
    const auto is_package = [](const std::string& text) { return text.find("package: ") == 0; };
    CHECK(is_package(fault({{"wrong_last"}}, {{"reference"}})));
    CHECK(is_package(fault({{"reads_null"}, ArmCode::nothing, false, false, ""}, {{"reference"}})));
    CHECK(fault({{"right"}}, {{"reference"}}) == "none");
  });
  // What a fault leaves of the supervisor's context goes with the measurement.
  Contest contest(DriverKind::host);
  be_quick(contest);
  try {
    contest.judge({{"right"}}, {{"right"}}, {{"reads_null"}});
    FAIL("a reference that faults was taken");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::package);
    CHECK(std::string(error.what()).find("reference.py: shape ragged") != std::string::npos);
  }
  CHECK(contest.judge({{"right"}}).verdict == Verdict::accepted);
}

TEST_CASE("what a host kernel does to its worker is the submission's verdict") {
  for (const char* kernel : {"aborts", "exits", "kills_itself", "lies"}) {
    const auto evaluation =
        judge_quickly(DriverKind::host, {{kernel}, ArmCode::nothing, false, false, ""});
    CHECK_MESSAGE(
        (evaluation.verdict == Verdict::runtime_error || evaluation.verdict == Verdict::gpu_fault),
        kernel, " ", summary(evaluation));
    CHECK(children_of_ours() == 0);
  }
}

TEST_CASE("only the shape that is asked for is measured") {
  Contest contest(DriverKind::host);
  be_quick(contest);
  contest.options.only.shape = "n1000000";
  const auto evaluation = contest.judge({{"right"}});
  REQUIRE(evaluation.shapes.size() == 1);
  CHECK(evaluation.shapes[0].name == "n1000000");
  CHECK(evaluation.shapes[0].rounds.size() == 1);
  contest.options.only.shape = "ragged";
  CHECK(contest.judge({{"right"}}).shapes.at(0).rounds.empty());
  contest.options.only.shape = "unknown";
  CHECK_THROWS_AS(contest.judge({{"right"}}), Error);
}

TEST_CASE("a progress callback that throws ends everything") {
  struct Stop {};
  const int before = open_descriptors();
  for (const char* when : {"starting", "checking", "round 2 of 6"}) {
    Contest contest(DriverKind::host);
    CHECK_THROWS_AS(contest.judge({{"right"}}, {{"right"}}, {{"reference"}},
                                  [&](const Progress& progress) {
                                    if (progress.step == when) throw Stop{};
                                  }),
                    Stop);
    CHECK(children_of_ours() == 0);
  }
  // While a replay runs, too.
  Contest contest(DriverKind::host);
  contest.challenge.limits.replay_s = 600;
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(
      contest.judge({{"never_ends"}, ArmCode::nothing, false, false, ""}, {{"right"}},
                    {{"reference"}},
                    [&](const Progress&) {
                      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(2)) {
                        throw Stop{};
                      }
                    }),
      Stop);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(300));
  CHECK(children_of_ours() == 0);
  CHECK(open_descriptors() <= before + 1);  // the host driver's own, at most
}
