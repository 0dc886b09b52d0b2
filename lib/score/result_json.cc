// SPDX-License-Identifier: Apache-2.0
#include "score/result_json.h"

#include "replay/plausible.h"

// Versions of the format
//   1  method 1

namespace kjudge {
namespace {

constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

// Bounds here are wide: whatever an evaluation came to, its result can be read again.
Kind<std::string> word_text() { return text_kind(1 << 12); }
Kind<double> nanoseconds_kind() { return number_kind(0, kMostNs); }
Kind<double> gpu_kind(const Bounds& bounds) { return number_kind(bounds.low, bounds.high); }
Kind<std::uint64_t> count_kind() { return integer_kind<std::uint64_t>(0, kMostCount); }
Kind<std::string> hash_kind() {
  return matching_kind("64 hexadecimal digits, or \"\" where there is none", "([0-9a-f]{64})?");
}

FieldTable<Clocks> clocks_table() {
  return FieldTable<Clocks>(
      {required("event_ns", &Clocks::event_ns, nanoseconds_kind(), "between the two events"),
       required("stamp_ns", &Clocks::stamp_ns, nanoseconds_kind(), "between the two stamp kernels"),
       required("host_ns", &Clocks::host_ns, nanoseconds_kind(),
                "in the worker, from unblock to stream synchronized"),
       required("supervisor_ns", &Clocks::supervisor_ns, nanoseconds_kind(),
                "in the supervisor, from go to done")});
}

// An arm of a pair: a list of replays under the arm's name.
Field<Pair> arm_field(ArmName arm) {
  const auto kind = list_kind(object_kind(clocks_table()), 0, 100);
  const auto index = static_cast<std::size_t>(arm);
  Field<Pair> field(FieldHead(std::string(name(arm)),
                              "its replays in this pair; the median of event_ns is its time",
                              kind));
  field.read = [=, read = kind.read](const JsonCursor& at, Pair& into) {
    into.arms[index].replays = read(at);
  };
  field.write = [=, write = kind.write](const Pair& from) {
    return write(from.arms[index].replays);
  };
  return field;
}

FieldTable<Pair> pair_table() {
  return FieldTable<Pair>(
      {required("regime", &Pair::regime, line_kind(), "regime of the inputs"),
       required("first", &Pair::first,
                word_kind<ArmName>(
                    {{"baseline", ArmName::baseline}, {"submission", ArmName::submission}}),
                "the arm that ran first"),
       arm_field(ArmName::baseline), arm_field(ArmName::submission),
       required("voids", &Pair::voids, integer_kind(0, 100), "attempts thrown away before"),
       required("void_causes", &Pair::void_causes, list_kind(word_text(), 0, 100),
                "why, one for each")});
}

FieldTable<RoundFacts> round_table() {
  return FieldTable<RoundFacts>(
      {required("null_graph_ns", &RoundFacts::null_graph_ns, nanoseconds_kind(),
                "event time of an empty graph"),
       required("clock_tick_ns", &RoundFacts::clock_tick_ns, nanoseconds_kind(),
                "resolution of the event clock"),
       required("pairs", &RoundFacts::pairs, list_kind(object_kind(pair_table()), 0, 1000),
                "in the order they were taken"),
       optional("clock_mhz", &RoundFacts::clock_mhz, gpu_kind(kClockMhz),
                "clock of a multiprocessor after the last pair; absent on the host driver"),
       optional("power_w", &RoundFacts::power_w, gpu_kind(kPowerW),
                "power of the GPU after the last pair; absent where NVML does not say"),
       optional("temperature_c", &RoundFacts::temperature_c, gpu_kind(kTemperatureC),
                "temperature of the GPU after the last pair; absent where NVML does not say"),
       optional("throttle_reasons", &RoundFacts::throttle_reasons, list_kind(word_text(), 0, 64),
                "why the GPU held its clocks down after the last pair; absent where NVML does not "
                "say")});
}

FieldTable<RowFailure> row_failure_table() {
  return FieldTable<RowFailure>(
      {required("rows", &RowFailure::rows, count_kind(),
                "rows of the tensor; 1 where the check measures it as one"),
       required("failed", &RowFailure::failed, count_kind(), "rows that are wrong"),
       required("first", &RowFailure::first, count_kind(), "the first of them, counted from 0"),
       required("worst", &RowFailure::worst, any_number_kind(),
                "largest error of a row, in the check's own measure"),
       required("limit", &RowFailure::limit, any_number_kind(), "the check's limit"),
       optional("baseline", &RowFailure::baseline, any_number_kind(),
                "of \"versus_baseline\": the baseline's error that the limit is made of; absent "
                "of others")});
}

FieldTable<CodeFailure> code_failure_table() {
  return FieldTable<CodeFailure>(
      {required("beyond", &CodeFailure::beyond, count_kind(),
                "elements further off than any may be, NaN and infinity among them"),
       required("worst_steps", &CodeFailure::worst_steps, count_kind(),
                "largest number of steps between an element and the expected one")});
}

FieldTable<CheckFailure> failure_table() {
  return FieldTable<CheckFailure>(
      {required("output", &CheckFailure::output, word_text(), "name of the tensor"),
       required("check", &CheckFailure::check, word_text(), "the check that failed"),
       required("elements", &CheckFailure::elements, count_kind(), "elements of the tensor"),
       required("mismatched", &CheckFailure::mismatched, count_kind(), "elements that differ"),
       required("first_index", &CheckFailure::first_index, count_kind(),
                "first that differs, counted from 0 with the last dimension fastest"),
       required("first_position", &CheckFailure::first_position,
                list_kind(integer_kind<std::int64_t>(0, kMostCount), 0, 16),
                "the same, by dimension"),
       required("out", &CheckFailure::out, any_number_kind(), "what was there"),
       required("expected", &CheckFailure::expected, any_number_kind(),
                "what should be, rounded to the output's type"),
       required("worst_abs", &CheckFailure::worst_abs, any_number_kind(),
                "largest absolute error of the tensor"),
       required("worst_rel", &CheckFailure::worst_rel, any_number_kind(),
                "largest relative error of the tensor"),
       required("nonfinite", &CheckFailure::nonfinite, count_kind(),
                "elements that are NaN or infinite on one side only"),
       required("unwritten", &CheckFailure::unwritten, count_kind(),
                "differing elements that still hold the poison from before the launch"),
       optional("rows", &CheckFailure::rows, object_kind(row_failure_table()),
                "of a check that measures rows; absent of others"),
       optional("codes", &CheckFailure::codes, object_kind(code_failure_table()),
                "of the check \"codes\"; absent of others"),
       required("regime", &CheckFailure::regime, word_text(), "regime of the inputs"),
       required("round", &CheckFailure::round, integer_kind(0, 1000), "counted from 0"),
       required("pair", &CheckFailure::pair, integer_kind(0, 1000),
                "of the round, counted from 0")});
}

FieldTable<ShapeFacts> shape_facts_table() {
  return FieldTable<ShapeFacts>(
      {required("name", &ShapeFacts::name, line_kind(1), "name of the shape or test"),
       required("timed", &ShapeFacts::timed, boolean_kind(), "false for a test"),
       required("replays_per_arm", &ShapeFacts::replays_per_arm, integer_kind(1, 100),
                "of each arm in each pair"),
       optional("floor_ns", &ShapeFacts::floor_ns, nanoseconds_kind(),
                "no kernel is known to be faster; absent where nobody says"),
       optional("floor_from", &ShapeFacts::floor_from,
                word_kind<FloorFrom>({{"challenge", FloorFrom::challenge},
                                      {"rates", FloorFrom::rates},
                                      {"measured", FloorFrom::measured}}),
                "what the floor was made of; absent where there is none"),
       required("verdict", &ShapeFacts::verdict, verdict_kind(), "on this shape"),
       required("message", &ShapeFacts::message, text_kind(), "for the contestant"),
       optional("failure", &ShapeFacts::failure, object_kind(failure_table()),
                "the first failed check; absent where none failed"),
       required("rounds", &ShapeFacts::rounds, list_kind(object_kind(round_table()), 0, 1000),
                "the rounds with their times, in the order they were taken")});
}

FieldTable<OnDevice> on_device_table() {
  using O = OnDevice;
  return FieldTable<O>(
      {required("device", &O::device, word_text(), "name of the device"),
       required("verdict", &O::verdict, verdict_kind(), "on this device"),
       required("message", &O::message, text_kind(), "what happened there"),
       required("shapes", &O::shapes, list_kind(object_kind(shape_facts_table()), 0, 10'000),
                "as the result's own")});
}

FieldTable<Phase> phase_table() {
  return FieldTable<Phase>(
      {required("name", &Phase::name, word_text(), "what was done"),
       required("seconds", &Phase::seconds, number_kind(0, 1e12), "wall time it took")});
}

// The derived block, written only.

Kind<Interval> interval_kind() {
  return object_kind(FieldTable<Interval>(
      {required("low", &Interval::low, number_kind(), "the smallest of the rounds"),
       required("high", &Interval::high, number_kind(), "the largest")}));
}

FieldTable<ShapeScore> shape_score_table() {
  using S = ShapeScore;
  return FieldTable<S>(
      {required("name", &S::name, word_text(), "name of the shape"),
       required("speedup", &S::speedup, number_kind(), "median of its pairs"),
       required("interval", &S::interval, interval_kind(), "of the speedup"),
       required("baseline_ns", &S::baseline_ns, number_kind(),
                "the baseline's time: geometric mean of the regimes' medians"),
       required("submission_ns", &S::submission_ns, number_kind(), "the submission's"),
       optional("speed_of_light", &S::speed_of_light, number_kind(),
                "the floor by the submission's time; absent where there is no floor"),
       required("below_floor", &S::below_floor, boolean_kind(),
                "faster than the floor: flagged, and still counted"),
       two_modes_field()});
}

Field<Score> absent_without_shapes(Field<Score> field) {
  field.required = false;
  field.write = [write = field.write](const Score& score) {
    return score.shapes.empty() ? std::nullopt : write(score);
  };
  return field;
}

FieldTable<DeviceScore> device_score_table() {
  using D = DeviceScore;
  return FieldTable<D>({required("device", &D::device, word_text(), "name of the device"),
                        required("speedup", &D::speedup, number_kind(), "as the score's"),
                        required("interval", &D::interval, interval_kind(), "of the speedup")});
}

FieldTable<Score> score_table() {
  return FieldTable<Score>(
      {required("ranked", &Score::ranked, boolean_kind(),
                "accepted, with every round of every shape"),
       optional("why_not", &Score::why_not, text_kind(),
                "the first reason; absent where it is ranked"),
       absent_without_shapes(required("speedup", &Score::speedup, number_kind(),
                                      "geometric mean of the shapes' speedups; absent where no "
                                      "shape has times")),
       absent_without_shapes(required("interval", &Score::interval, interval_kind(),
                                      "of the speedup; absent where no shape has times")),
       required("shapes", &Score::shapes, list_kind(object_kind(shape_score_table())),
                "those that have times"),
       optional("devices", &Score::devices, list_kind(object_kind(device_score_table())),
                "what each device makes of it, the first being the score's own; absent where one "
                "measured"),
       optional("devices_agree", &Score::devices_agree, boolean_kind(),
                "whether some speedup lies in the intervals of all of them")});
}

const FieldTable<Evaluation>& result_table() {
  using E = Evaluation;
  static const FieldTable<E> table(
      {format_field<E>("kjudge-result/1"),
       required("id", &E::id, word_text(), "UUID of the evaluation"),
       required("challenge", &E::challenge, word_text(), "name of the challenge"),
       required("challenge_version", &E::challenge_version, integer_kind(1, 1'000'000),
                "its version"),
       required("challenge_sha256", &E::challenge_sha256, hash_kind(), "of the challenge's folder"),
       optional("variant", &E::variant, request_kind(),
                "the part of the challenge that was asked for, CHALLENGE:dtype::shape; absent: all "
                "of it"),
       required("submission", &E::submission, word_text(), "path or name as handed in"),
       required("submission_sha256", &E::submission_sha256, hash_kind(),
                "of the submission's files"),
       optional("baseline_sha256", &E::baseline_sha256, hash_kind(),
                "of the recording of the baseline; absent where none was replayed"),
       optional("reference_sha256", &E::reference_sha256, hash_kind(),
                "of the recording of the reference; absent where none was replayed"),
       optional("bundle_sha256", &E::bundle_sha256, hash_kind(),
                "of the recording of the submission; absent where none was replayed"),
       required("method", &E::method, integer_kind(1, 1000),
                "number of the way in which kjudge measured"),
       required("kjudge_version", &E::kjudge_version, word_text(), "of the program"),
       required("driver", &E::driver, word_text(), "such as \"host 1.0\" or \"cuda 13.0\""),
       required("device", &E::device, word_text(), "name, with UUID for a GPU"),
       required("arch", &E::arch, word_text(), "such as \"x86_64\" or \"sm_90\""),
       required("node", &E::node, word_text(), "the machine"),
       required("trust", &E::trust,
                word_kind<std::string>({{"device", "device"}, {"process", "process"}, {"", ""}}),
                "\"process\" where kernels are host code of their worker, whose times are "
                "believed only among friends"),
       optional("sandbox", &E::sandbox, line_kind(0, 200),
                "where the submission's code ran; absent where it ran without a sandbox"),
       required("started", &E::started,
                matching_kind("a time such as \"2025-01-31T12:00:00Z\", or \"\"",
                              "([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                              "([.][0-9]{1,9})?Z)?"),
                "when it began, in UTC"),
       required("cache", &E::cache,
                word_kind<CacheMode>({{"cold", CacheMode::cold}, {"hot", CacheMode::hot}}),
                "whether caches held the inputs when a replay started"),
       required("peak_bytes", &E::peak_bytes, count_kind(), "device memory at its most"),
       required("verdict", &E::verdict, verdict_kind(), "on the submission"),
       required("message", &E::message, text_kind(), "what happened and what to do"),
       derived_field<E, Score>("score", score, object_kind(score_table()),
                               "computed from the rest; not read back"),
       required("shapes", &E::shapes, list_kind(object_kind(shape_facts_table()), 0, 10'000),
                "in the order of the challenge"),
       optional("others", &E::others, list_kind(object_kind(on_device_table()), 0, 16),
                "the same recording measured on other devices, each apart"),
       required("phases", &E::phases, list_kind(object_kind(phase_table()), 0, 1000),
                "steps of the evaluation with their wall time"),
       required("log", &E::log, text_kind(std::size_t{256} << 20), "the contestant's own output")});
  return table;
}

// A verdict follows from those of the shapes, on all devices; one that does not was changed by
// hand.
void check_verdict(const Evaluation& evaluation, const std::filesystem::path& path) {
  bool some_wrong = false;
  const auto check_accepted = [&](Verdict verdict, const std::string& at) {
    some_wrong = some_wrong || verdict == Verdict::wrong_result;
    if (evaluation.verdict != Verdict::accepted || verdict == Verdict::accepted) return;
    throw Error(Fault::malformed,
                cat(path.native(), ": ", at,
                    ".verdict: expected \"accepted\", as the result's own verdict is, found \"",
                    name(verdict), "\""));
  };
  const auto check_shapes = [&](const std::vector<ShapeFacts>& shapes, const std::string& at) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      check_accepted(shapes[i].verdict, cat(at, "shapes[", i, "]"));
    }
  };
  check_shapes(evaluation.shapes, "");
  for (std::size_t i = 0; i < evaluation.others.size(); ++i) {
    const std::string at = cat("others[", i, "]");
    check_accepted(evaluation.others[i].verdict, at);
    check_shapes(evaluation.others[i].shapes, at + ".");
  }
  if (evaluation.verdict == Verdict::wrong_result && !some_wrong) {
    throw Error(Fault::malformed,
                cat(path.native(), ": verdict: expected the verdict of one of the shapes, found \"",
                    name(evaluation.verdict), "\""));
  }
}

}  // namespace

Field<ShapeScore> two_modes_field() {
  const auto kind = list_kind(
      word_kind<ArmName>({{"baseline", ArmName::baseline}, {"submission", ArmName::submission}}), 0,
      2);
  Field<ShapeScore> field(
      FieldHead("two_modes",
                "the arms whose times lie around two values, so that their median is one of them "
                "by chance; absent where none do",
                kind));
  field.required = false;
  field.derived = true;
  field.write = [write = kind.write](const ShapeScore& from) -> std::optional<Json> {
    std::vector<ArmName> arms;
    for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
      if (from.two_modes[static_cast<std::size_t>(arm)]) arms.push_back(arm);
    }
    if (arms.empty()) return std::nullopt;
    return write(arms);
  };
  return field;
}

Kind<Verdict> verdict_kind() {
  std::vector<std::pair<std::string, Verdict>> words;
  for (int i = 0; i <= static_cast<int>(Verdict::judge_error); ++i) {
    words.emplace_back(name(static_cast<Verdict>(i)), static_cast<Verdict>(i));
  }
  return word_kind(words);
}

std::string result_to_json(const Evaluation& evaluation) {
  return print_json(Json{result_table().write(evaluation)});
}

Evaluation result_from_json(const std::string& text, const std::filesystem::path& path) {
  const Json json = parse_json(text, path.native(), Fault::malformed);
  Evaluation evaluation = result_table().read(JsonCursor(json, path.native(), Fault::malformed));
  check_verdict(evaluation, path);
  return evaluation;
}

Json score_to_json(const Score& score) { return Json{score_table().write(score)}; }

JsonFormat result_json_format() { return json_format(result_table()); }

}  // namespace kjudge
