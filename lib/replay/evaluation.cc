// SPDX-License-Identifier: Apache-2.0
#include "replay/evaluation.h"

#include "replay/timing.h"

namespace kjudge {
namespace {

constexpr std::array<std::string_view, 9> kVerdictNames = {
    "accepted", "wrong_result",  "build_error", "runtime_error", "refused",
    "timeout",  "out_of_memory", "gpu_fault",   "judge_error"};

}  // namespace

std::string_view name(Verdict verdict) {
  return kVerdictNames.at(static_cast<std::size_t>(verdict));
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  for (std::size_t i = 0; i < kVerdictNames.size(); ++i) {
    if (kVerdictNames[i] == text) return static_cast<Verdict>(i);
  }
  return std::nullopt;
}

std::string_view name(ArmName arm) { return arm == ArmName::baseline ? "baseline" : "submission"; }

double ArmTimes::time_ns() const {
  std::vector<double> times;
  for (const Clocks& clocks : replays) times.push_back(clocks.event_ns);
  return median(std::move(times));
}

double Pair::ratio() const {
  return arms[static_cast<std::size_t>(ArmName::baseline)].time_ns() /
         arms[static_cast<std::size_t>(ArmName::submission)].time_ns();
}

}  // namespace kjudge
