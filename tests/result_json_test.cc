// SPDX-License-Identifier: Apache-2.0
#include "score/result_json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>

#include "error.h"
#include "evaluations.h"
#include "file.h"
#include "json_faults.h"
#include "judge/report.h"
#include "score/scores_json.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

const fs::path kTests = KJUDGE_TEST_FOLDER;

Evaluation accepted() {
  ShapeFacts big = evaluations::shape(
      "4096x1000", [](int round, int pair) { return 1.5 + round / 64.0 + pair / 256.0; });
  big.floor_ns = 900'000.5;
  big.floor_from = FloorFrom::measured;
  big.rounds[1].pairs[3].voids = 1;
  big.rounds[1].pairs[3].void_causes = {"another process used the device"};
  for (RoundFacts& round : big.rounds) round.pairs[4].regime = "large";
  ShapeFacts small = evaluations::shape("17x3", [](int, int) { return 1.25; });
  small.replays_per_arm = 3;
  for (RoundFacts& round : small.rounds) {
    for (Pair& pair : round.pairs) {
      for (ArmTimes& arm : pair.arms) {
        const Clocks one = arm.replays[0];
        arm.replays = {{one.event_ns + 32, one.stamp_ns + 32, one.host_ns + 40, one.supervisor_ns},
                       one,
                       {one.event_ns - 32, one.stamp_ns - 32, one.host_ns - 35, one.supervisor_ns}};
      }
    }
  }
  ShapeFacts test;
  test.name = "test-1x1";
  test.timed = false;
  return evaluations::accepted({big, small, test});
}

Evaluation wrong_result() {
  Evaluation evaluation = evaluations::accepted({});
  evaluation.verdict = Verdict::wrong_result;
  evaluation.message = "test test-1x7: output y: 12 of 4096 elements differ";
  evaluation.log = "Traceback (most recent call last):\n\t\x1b[31mé\x1b[0m \"quoted\" \\ \xff\n";
  ShapeFacts& test = evaluation.shapes.emplace_back();
  test.name = "test-1x7";
  test.timed = false;
  test.verdict = Verdict::wrong_result;
  test.message = "output y: 12 of 4096 elements differ";
  CheckFailure failure;
  failure.output = "y";
  failure.check = "close";
  failure.elements = 4096;
  failure.mismatched = 12;
  failure.first_index = 17;
  failure.first_position = {0, 17};
  failure.out = std::nan("");
  failure.expected = -std::numeric_limits<double>::infinity();
  failure.worst_abs = 0.1;
  failure.worst_rel = 1e300;
  failure.nonfinite = 1;
  failure.unwritten = 11;
  failure.regime = "nominal";
  failure.round = 0;
  failure.pair = 2;
  test.failure = failure;
  return evaluation;
}

Evaluation refused() {
  Evaluation evaluation = evaluations::accepted({});
  evaluation.verdict = Verdict::refused;
  evaluation.message = "shape 4096x1000: node 3 is a host callback; a graph may hold kernels only";
  evaluation.phases.clear();
  return evaluation;
}

Evaluation judge_error() {
  Evaluation evaluation;
  evaluation.id = "0";
  evaluation.challenge = "softmax";
  evaluation.message = "/dev/nvidia0: No such file or directory";
  return evaluation;
}

struct Golden {
  const char* name;
  Evaluation (*make)();
};
constexpr Golden kGolden[] = {{"accepted", accepted},
                              {"wrong_result", wrong_result},
                              {"refused", refused},
                              {"judge_error", judge_error}};

// The file of golden/result-v1; KJUDGE_WRITE_GOLDEN=1 writes it anew, which no released version
// may.
std::string golden(const std::string& name, const std::string& made) {
  const fs::path path = kTests / "golden" / "result-v1" / (name + ".json");
  if (std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr) write_file_atomically(path, made);
  return read_file(path);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  return json_faults::message_of([&] { result_from_json(text, "r.json"); });
}

}  // namespace

TEST_CASE("results are written as the golden files have them") {
  for (const Golden& one : kGolden) {
    CAPTURE(one.name);
    const std::string made = result_to_json(one.make());
    CHECK(made == golden(one.name, made));
  }
}

TEST_CASE("golden results read back to the same facts and the same score") {
  for (const Golden& one : kGolden) {
    CAPTURE(one.name);
    const std::string text = golden(one.name, result_to_json(one.make()));
    const Evaluation evaluation = result_from_json(text, "r.json");
    CHECK(result_to_json(evaluation) == text);
    CHECK(evaluation.verdict == one.make().verdict);
  }
  const Evaluation read = result_from_json(result_to_json(accepted()), "r.json");
  const Score made = score(accepted()), again = score(read);
  CHECK(made.ranked);
  CHECK(again.speedup == made.speedup);
  CHECK(again.interval.low == made.interval.low);
  CHECK(again.interval.high == made.interval.high);
  CHECK(read.shapes[0].rounds[1].pairs[3].void_causes.size() == 1);
  CHECK(read.shapes[1].rounds[5].pairs[4].arms[1].replays.size() == 3);
  CHECK(read.shapes[0].floor_ns == 900'000.5);
  CHECK(read.shapes[0].floor_from == FloorFrom::measured);
  CHECK(!read.shapes[1].floor_ns.has_value());
  CHECK(!read.shapes[1].floor_from.has_value());
}

TEST_CASE("a failure's values may be NaN and infinite, and a log any bytes") {
  const Evaluation read = result_from_json(result_to_json(wrong_result()), "r.json");
  REQUIRE(read.shapes[0].failure.has_value());
  CHECK(std::isnan(read.shapes[0].failure->out));
  CHECK(read.shapes[0].failure->expected == -std::numeric_limits<double>::infinity());
  CHECK(read.shapes[0].failure->first_position == std::vector<std::int64_t>{0, 17});
  CHECK(read.log.ends_with("\"quoted\" \\ \xef\xbf\xbd\n"));
}

TEST_CASE("a failure of rows says how far they are off") {
  Evaluation evaluation = wrong_result();
  evaluation.shapes[0].failure->check = "rel_l2";
  evaluation.shapes[0].failure->rows = {100, 3, 7, std::numeric_limits<double>::infinity(), 0.25};
  const Evaluation read = result_from_json(result_to_json(evaluation), "r.json");
  const auto& rows = read.shapes[0].failure.value().rows;
  REQUIRE(rows.has_value());
  CHECK(rows->rows == 100);
  CHECK(rows->failed == 3);
  CHECK(rows->first == 7);
  CHECK(std::isinf(rows->worst));
  CHECK(rows->limit == 0.25);
  CHECK(!rows->baseline.has_value());
  const std::string page = evaluation_page(read);
  CHECK_MESSAGE(page.find("; 3 of 100 rows, worst inf, limit 0.25; largest error of the first at "
                          "[0, 17]: got nan") != page.npos,
                page);
}

TEST_CASE("a failure of codes says how many steps they are off") {
  Evaluation evaluation = wrong_result();
  evaluation.shapes[0].failure->codes = {3, std::uint64_t{1} << 62};
  const Evaluation read = result_from_json(result_to_json(evaluation), "r.json");
  CHECK(read.shapes[0].failure.value().codes.value().beyond == 3);
  CHECK(read.shapes[0].failure->codes->worst_steps == std::uint64_t{1} << 62);
  CHECK(evaluation_page(read).find("; 3 beyond the steps allowed, worst 4611686018427387904;") !=
        std::string::npos);
}

TEST_CASE("what the GPU said after a round: absent is not the same as for no reason") {
  Evaluation evaluation = accepted();
  auto& rounds = evaluation.shapes[0].rounds;
  rounds[0].clock_mhz = 1754.5;
  rounds[0].power_w = 698.5;
  rounds[0].temperature_c = 71;
  rounds[0].throttle_reasons = {{"sw_power_cap", "hw_slowdown"}};
  rounds[1].clock_mhz = 1980;
  rounds[1].throttle_reasons.emplace();
  const Evaluation read = result_from_json(result_to_json(evaluation), "r.json");
  const auto& again = read.shapes[0].rounds;
  CHECK(again[0].clock_mhz == 1754.5);
  CHECK(again[0].power_w == 698.5);
  CHECK(again[0].temperature_c == 71);
  CHECK(again[0].throttle_reasons == rounds[0].throttle_reasons);
  CHECK(again[1].throttle_reasons == std::vector<std::string>());
  CHECK(!again[1].power_w);
  CHECK(!again[2].clock_mhz);
  CHECK(!again[2].throttle_reasons);

  const std::string page = evaluation_page(evaluation);
  CHECK_MESSAGE(page.find("  4096x1000: clock 1754 to 1980 MHz, at most 698.5 W, at most 71 C, "
                          "throttled: sw_power_cap, hw_slowdown\n") != page.npos,
                page);
  CHECK(page.find("17x3: clock") == page.npos);
  rounds.erase(rounds.begin());
  const std::string cool = evaluation_page(evaluation);
  CHECK_MESSAGE(cool.find("  4096x1000: clock 1980 to 1980 MHz, not throttled\n") != cool.npos,
                cool);
}

TEST_CASE("what other devices measured reads back, and is told beside the score") {
  Evaluation evaluation = accepted();
  evaluation.device = "GPU-1";
  evaluation.others = {{"GPU-2", Verdict::accepted, "fine", evaluation.shapes}};
  const std::string text = result_to_json(evaluation);
  CHECK(text.find("\"devices\": [") != text.npos);
  CHECK(text.find("devices_agree") == text.npos);  // as mostly
  const Evaluation read = result_from_json(text, "r.json");
  CHECK(result_to_json(read) == text);
  REQUIRE(read.others.size() == 1);
  CHECK(read.others[0].device == "GPU-2");
  CHECK(read.others[0].message == "fine");
  CHECK(read.others[0].shapes.size() == 3);
  CHECK(read.others[0].shapes[0].floor_ns == 900'000.5);
  CHECK(evaluation_table(read).find("\non GPU-1: 1.392x [1.374, 1.409]\n"
                                    "on GPU-2: 1.392x [1.374, 1.409]\nscore: ") !=
        std::string::npos);

  evaluation.others[0].shapes.erase(evaluation.others[0].shapes.begin());  // 1.25x alone
  CHECK(result_to_json(evaluation).find("\"devices_agree\": false") != std::string::npos);
  CHECK(evaluation_table(evaluation).find("\nthe devices disagree: ") != std::string::npos);
}

TEST_CASE("the score in a file is not believed") {
  const std::string text = result_to_json(accepted());
  const std::string forged = replaced(text, "\"speedup\": ", "\"speedup\": 9");
  REQUIRE(forged != text);
  CHECK(result_to_json(result_from_json(forged, "r.json")) == text);
}

TEST_CASE("a time that is no number is a bug of the judge, not a result") {
  Evaluation evaluation = accepted();
  evaluation.shapes[0].rounds[0].pairs[0].arms[0].replays[0].host_ns = std::nan("");
  CHECK_THROWS_AS(result_to_json(evaluation), Error);
}

TEST_CASE("every field of a result refuses every wrong kind, and names itself") {
  Evaluation evaluation = wrong_result();
  evaluation.shapes[0].failure->out = 1;  // words may stand here, but not any
  evaluation.shapes[0].failure->expected = 2;
  evaluation.shapes[0].failure->rows = {100, 3, 7, 0.5, 0.25, 0.125};
  evaluation.shapes[0].failure->codes = {3, 17};
  ShapeFacts shape = accepted().shapes[0];
  shape.rounds.resize(1);
  shape.rounds[0].pairs.resize(1);
  shape.rounds[0].pairs[0].void_causes = {"a"};
  shape.rounds[0].clock_mhz = 1980;
  shape.rounds[0].power_w = 698.5;
  shape.rounds[0].temperature_c = 71;
  shape.rounds[0].throttle_reasons = {{"sw_power_cap"}};
  evaluation.shapes.push_back(shape);
  evaluation.others = {{"another GPU", Verdict::wrong_result, "y is wrong", evaluation.shapes}};
  evaluation.baseline_sha256 = evaluation.reference_sha256 = evaluation.bundle_sha256 =
      std::string(64, 'b');
  evaluation.sandbox = "bubblewrap 0.8.0, uid 60001, no cgroup";
  evaluation.variant = parse_request("softmax:float32");
  const Json right = parse_json(result_to_json(evaluation), "right", Fault::bug);
  const int tried = json_faults::try_every_fault(
      right, result_json_format().schema,
      [](const std::string& faulty) { result_from_json(faulty, "r.json"); }, {.file = "r.json"});
  CHECK(tried > 600);
}

TEST_CASE("a result cut or changed anywhere is refused, or another result") {
  Evaluation evaluation = wrong_result();
  evaluation.log = "the contestant's own";
  evaluation.shapes.push_back(evaluations::shape("17x3", [](int, int) { return 1.25; }));
  evaluation.shapes.back().rounds.resize(1);
  evaluation.shapes.back().rounds[0].pairs.resize(1);
  std::string text = result_to_json(evaluation);
  text.pop_back();  // the last line's end
  const int others =
      json_faults::try_every_damage(text, Fault::malformed, [](const std::string& damaged) {
        const Evaluation other = result_from_json(damaged, "r.json");
        const std::string written = result_to_json(other);
        CHECK(result_to_json(result_from_json(written, "w.json")) == written);
        CHECK(!evaluation_page(other).empty());
        CHECK(!print_json(scores_json({scored_file("r.json", other)})).empty());
      });
  CHECK(others > 100);  // in its texts and numbers
}

// Found by fuzz_json: the ratio of two such times is infinite, which JSON cannot hold.
TEST_CASE("a result of times that no double holds the ratio of is shown, without a score") {
  Evaluation evaluation = accepted();
  evaluation.shapes[0].rounds[0].pairs[0].arms[0].replays[0].event_ns = 5e-324;
  const Evaluation read = result_from_json(result_to_json(evaluation), "r.json");
  CHECK(print_json(scores_json({scored_file("r.json", read)})).find("0.001 ns") !=
        std::string::npos);
}

TEST_CASE("negative and absurd times of a result are refused") {
  const std::string text = result_to_json(accepted());
  const std::string day = "expected a number from 0 to 86400000000000, found ";
  for (const char* field : {"event_ns", "stamp_ns", "host_ns", "supervisor_ns", "null_graph_ns",
                            "clock_tick_ns", "floor_ns", "seconds"}) {
    CAPTURE(field);
    const std::string name = cat("\"", field, "\": ");
    const std::size_t at = text.find(name) + name.size();
    REQUIRE(at > name.size());
    for (const char* absurd : {"-5", "1e300"}) {
      std::string faulty = text;
      faulty.replace(at, text.find_first_of(",} \n", at) - at, absurd);
      const std::string message = error_of(faulty);
      CHECK_MESSAGE(message.starts_with("r.json: "), message);
      CHECK_MESSAGE(message.find(cat(field, ": expected a number from 0 to ")) != message.npos,
                    message);
    }
  }
  CHECK(error_of(replaced(text, "\"floor_ns\": 900000.5", "\"floor_ns\": -5")) ==
        "r.json: shapes[0].floor_ns: " + day + "-5");
}

TEST_CASE("values out of range, and files of other versions") {
  const std::string text = result_to_json(wrong_result());
  CHECK(error_of(replaced(text, "\"verdict\": \"wrong_result\"", "\"verdict\": \"fine\""))
            .starts_with("r.json: verdict: expected \"accepted\", \"wrong_result\", "));
  CHECK(error_of(replaced(text, "\"mismatched\": 12", "\"mismatched\": -1")) ==
        "r.json: shapes[0].failure.mismatched: expected an integer from 0 to 2^62, found -1");
  CHECK(error_of(replaced(text, "\"out\": \"nan\"", "\"out\": \"NaN\""))
            .starts_with("r.json: shapes[0].failure.out: expected "));
  CHECK(error_of(replaced(text, std::string(64, 'a'), "abc"))
            .starts_with("r.json: challenge_sha256: expected 64 hexadecimal digits"));
  CHECK(error_of(replaced(text, "2025-01-31T", "31.1.2025 "))
            .starts_with("r.json: started: expected a time such as "));
  CHECK(error_of(replaced(text, "kjudge-result/1", "kjudge-result/2")) ==
        "r.json: format: expected \"kjudge-result/1\", found \"kjudge-result/2\"");
  CHECK(error_of(text.substr(0, text.size() / 2)).starts_with("r.json: parse error at line "));
  try {
    result_from_json("{}", "r.json");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
  }
}

TEST_CASE("a result of 100 shapes reads back whole") {
  std::vector<ShapeFacts> shapes;
  for (int i = 0; i < 100; ++i) {
    shapes.push_back(evaluations::shape(
        cat("shape-", i), [&](int round, int pair) { return 1 + (i + round * 5 + pair) / 977.0; }));
  }
  const std::string text = result_to_json(evaluations::accepted(shapes));
  const Evaluation read = result_from_json(text, "r.json");
  CHECK(read.shapes.size() == 100);
  CHECK(result_to_json(read) == text);
}

TEST_CASE("a verdict that contradicts those of the shapes is refused") {
  const auto message_of = [](const Evaluation& evaluation) {
    return json_faults::message_of([&] { result_from_json(result_to_json(evaluation), "r.json"); });
  };
  Evaluation edited = accepted();
  CHECK(message_of(edited) == "no error");
  edited.shapes[1].verdict = Verdict::gpu_fault;
  CHECK(message_of(edited) ==
        "r.json: shapes[1].verdict: expected \"accepted\", as the result's own verdict is, found "
        "\"gpu_fault\"");
  edited = accepted();
  edited.others = {{"GPU-2", Verdict::accepted, "", edited.shapes}};
  CHECK(message_of(edited) == "no error");
  edited.others[0].shapes[1].verdict = Verdict::timeout;
  CHECK(message_of(edited) ==
        "r.json: others[0].shapes[1].verdict: expected \"accepted\", as the result's own verdict "
        "is, found \"timeout\"");
  edited.others[0] = {"GPU-2", Verdict::wrong_result, "", {}};
  CHECK(message_of(edited).starts_with("r.json: others[0].verdict: expected \"accepted\""));
  edited.verdict = Verdict::wrong_result;
  CHECK(message_of(edited) == "no error");
  edited = wrong_result();
  CHECK(message_of(edited) == "no error");
  edited.shapes[0].verdict = Verdict::accepted;
  CHECK(message_of(edited) ==
        "r.json: verdict: expected the verdict of one of the shapes, found \"wrong_result\"");
}
