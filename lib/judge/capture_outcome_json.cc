// SPDX-License-Identifier: Apache-2.0
#include "judge/capture_outcome_json.h"

#include "score/result_json.h"

namespace kjudge {
namespace {

using SecondsOfSteps = std::vector<std::pair<std::string, double>>;

struct PrintedOutcome : CaptureOutcome {
  std::string bundle;
  SecondsOfSteps seconds;
};

const FieldTable<PrintedOutcome>& capture_outcome_table() {
  using O = PrintedOutcome;
  static const FieldTable<O> table(
      {format_field<O>("kjudge-capture-outcome/1"),
       required<O, Verdict>("verdict", &O::verdict, verdict_kind(), "accepted: it was recorded"),
       required<O, std::string>("message", &O::message, text_kind(),
                                "what happened and what to do; empty where it was recorded"),
       required("bundle", &O::bundle, text_kind(), "path of the recording; empty: there is none"),
       required<O, std::string>("sha256", &O::sha256, text_kind(64),
                                "of the files that were captured; empty where they were not read"),
       required("seconds", &O::seconds, map_kind(line_kind(1, 100), number_kind(0)),
                "wall time by step: build, import, prepare, capture, export"),
       required<O, std::string>("log", &O::log, text_kind(std::size_t{256} << 20),
                                "the contestant's own output")});
  return table;
}

}  // namespace

Json capture_outcome_json(const CaptureOutcome& outcome, const std::string& bundle) {
  PrintedOutcome printed{outcome, {}, {}};
  if (outcome.verdict == Verdict::accepted) printed.bundle = bundle;
  for (const Phase& phase : outcome.phases) printed.seconds.emplace_back(phase.name, phase.seconds);
  return Json{capture_outcome_table().write(printed)};
}

JsonFormat capture_outcome_json_format() { return json_format(capture_outcome_table()); }

}  // namespace kjudge
