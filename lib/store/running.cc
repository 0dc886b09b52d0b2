// SPDX-License-Identifier: Apache-2.0
#include "store/running.h"

#include <chrono>

#include "error.h"
#include "file.h"
#include "store/claim.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& claim) { return claim / "running.json"; }

// By this machine's clock, which is good enough for what is only shown.
bool is_late(const fs::path& claim, int seconds) {
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(claim / "lease.json");
  return std::chrono::abs(age) > std::chrono::seconds(seconds);
}

// Empty: there is none whose judge lives.
fs::path live_claim(const fs::path& submission) {
  const auto attempt = open_claim(submission);
  if (!attempt) return {};
  const fs::path claim = submission / "claims" / std::to_string(*attempt);
  const Lease lease = read_lease(claim);
  return has_ended(lease.holder) || is_late(claim, lease.seconds) ? fs::path() : claim;
}

}  // namespace

const FieldTable<RunningEvaluation>& running_table() {
  using R = RunningEvaluation;
  using Step = R::Step;
  constexpr std::size_t kNameBytes = 1000;
  constexpr int kMost = 1 << 30;
  static const FieldTable<R> table({
      format_field<R>("kjudge-running/1"),
      required("step", &R::step,
               word_kind<Step>({{"queued", Step::queued},
                                {"building", Step::building},
                                {"capturing", Step::capturing},
                                {"replaying", Step::replaying}}),
               "of the evaluation; queued: the judge waits for the device, or captures baseline "
               "and reference"),
      optional("doing", &R::doing, text_kind(kNameBytes),
               "while it is replayed: \"checking\", \"round 2 of 6\""),
      optional("shape", &R::shape, text_kind(kNameBytes), "that is replayed now"),
      optional("shape_number", &R::shape_number, integer_kind(0, kMost),
               "its place, from 1, among timed shapes and tests"),
      optional("shapes", &R::shapes, integer_kind(0, kMost), "how many there are"),
      optional("done", &R::done, number_kind(0, 1), "part of the replays that are done"),
      required("updated", &R::updated, line_kind(1, 40), "UTC, RFC 3339"),
  });
  return table;
}

std::string_view name(RunningEvaluation::Step step) {
  switch (step) {
    case RunningEvaluation::Step::queued:
      return "queued";
    case RunningEvaluation::Step::building:
      return "building";
    case RunningEvaluation::Step::capturing:
      return "capturing";
    case RunningEvaluation::Step::replaying:
      return "replaying";
  }
  return "";
}

std::string text_of(const RunningEvaluation& running) {
  using Step = RunningEvaluation::Step;
  std::string text(name(running.step));
  if (running.step == Step::queued && running.ahead) {
    text += *running.ahead == 0 ? ", next to be judged" : cat(", ", *running.ahead, " before it");
  }
  if (running.step == Step::replaying) {
    text += cat(running.doing.empty() ? "" : ", ", running.doing, ", shape ", running.shape_number,
                " of ", running.shapes, ": ", running.shape);
  }
  return text;
}

void write_running(const fs::path& claim, const RunningEvaluation& running) {
  replace_file(file_of(claim), print_json(Json{running_table().write(running)}));
}

void remove_running(const fs::path& claim) {
  std::error_code ignored;
  fs::remove(file_of(claim), ignored);
}

bool is_judged(const fs::path& submission) {
  try {
    return !live_claim(submission).empty();
  } catch (const Error&) {
    return false;  // it ended just now
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

std::optional<RunningEvaluation> read_running(const fs::path& submission) {
  try {
    const fs::path claim = live_claim(submission);
    if (claim.empty()) return std::nullopt;
    const std::string path = file_of(claim).string();
    const Json json = parse_json(read_file(path, 1u << 16), path, Fault::malformed);
    auto running = running_table().read(JsonCursor(json, path, Fault::malformed));
    if (running.step == RunningEvaluation::Step::queued) running.ahead = 0;
    return running;
  } catch (const Error&) {
    return std::nullopt;  // it ended just now, or says nothing
  } catch (const fs::filesystem_error&) {
    return std::nullopt;
  }
}

}  // namespace kjudge
