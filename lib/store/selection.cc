// SPDX-License-Identifier: Apache-2.0
#include "store/selection.h"

#include <chrono>
#include <regex>

#include "challenge/variant_request.h"
#include "error.h"
#include "file_names.h"

namespace kjudge {

namespace {

// Whether there is such a day and time of day, of a text with digits in the right places.
bool is_there(const std::string& time) {
  const auto number = [&](std::size_t at, std::size_t digits) {
    return std::stoi(time.substr(at, digits));
  };
  const std::chrono::year_month_day day(std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2))));
  return day.ok() && number(11, 2) < 24 && number(14, 2) < 60 && number(17, 2) < 60;
}

}  // namespace

const FieldTable<Selection>& selection_table() {
  using S = Selection;
  const auto time = matching_kind("a time such as \"2026-11-30T12:00:00Z\", or \"\"",
                                  "([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?");
  static const FieldTable<S> table({
      optional("submission", &S::submission, integer_kind(0, 1 << 30), "number of the submission"),
      optional("evaluation", &S::evaluation, line_kind(0, 64), "UUID of the evaluation"),
      optional("run", &S::run, line_kind(0, 200), "name of the run"),
      optional("challenge", &S::challenge, line_kind(0, 100), "name of the challenge"),
      optional("challenge_version", &S::challenge_version, integer_kind(0, 1'000'000),
               "its version"),
      optional("method", &S::method, integer_kind(0, 1000), "how it was measured"),
      optional("node", &S::node, line_kind(0, 300), "the machine"),
      optional("gpu", &S::gpu, line_kind(0, 100), "kind of the device, or its arch"),
      optional("from", &S::from, time, "began then or later, UTC"),
      optional("to", &S::to, time, "began then or before, UTC"),
  });
  return table;
}

Selectable selectable(const ScoreIndex& index, const ScoredSubmission& submission,
                      const ScoredEvaluation& evaluation) {
  const Terms& terms = index.terms(evaluation);
  return {submission.number,       submission.identity.run,
          evaluation.id,           terms.challenge,
          terms.challenge_version, terms.method,
          evaluation.node,         terms.arch,
          evaluation.started,      terms.device_kind};
}

Selectable selectable(const SubmissionIdentity& submission, const Evaluation& facts) {
  return {submission.number,
          submission.run,
          facts.id,
          facts.challenge,
          facts.challenge_version,
          facts.method,
          facts.node,
          facts.arch,
          facts.started,
          device_kind(facts.arch, facts.device)};
}

bool selects(const Selection& selection, const Selectable& one) {
  const auto is = [](const auto& wanted, const auto& found) {
    return wanted == std::decay_t<decltype(wanted)>{} || wanted == found;
  };
  return is(selection.submission, one.submission) && is(selection.evaluation, one.evaluation) &&
         (selection.run.empty() || same_name(selection.run, one.run)) &&
         is(selection.challenge, one.challenge) &&
         is(selection.challenge_version, one.challenge_version) &&
         is(selection.method, one.method) && is(selection.node, one.node) &&
         names_device(selection.gpu, one.arch, one.device_kind) &&
         (selection.from.empty() || one.started >= selection.from) &&
         (selection.to.empty() || one.started <= selection.to);
}

std::string time_of(const std::string& text, DayEnd end) {
  static const std::regex day("[0-9]{4}-[0-9]{2}-[0-9]{2}");
  static const std::regex time("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z");
  if (text.empty()) return text;
  std::string found = text;
  if (std::regex_match(text, day)) found += end == DayEnd::first ? "T00:00:00Z" : "T23:59:59Z";
  if (std::regex_match(found, time) && is_there(found)) return found;
  throw Error(Fault::usage, cat("\"", text,
                                "\": expected a day as 2026-11-30, or a time as "
                                "2026-11-30T12:00:00Z, in UTC"));
}

}  // namespace kjudge
