// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <set>
#include <string_view>
#include <utility>

#include "error.h"
#include "judge/records_json.h"
#include "judge/report.h"
#include "left_out.h"
#include "select.h"
#include "store/judgements.h"

namespace kjudge {
namespace {

struct InvalidateOptions : SelectOptions {
  std::string reason;
  bool list = false, preview = false;
  int undo = 0;
};

// An evaluation, or a result of a play-off.
struct Selected {
  InvalidatedEvaluation evaluation;
  std::string challenge, node, started;
};

std::vector<Selected> selected(const ResultsDirectory& results, const ScoreIndex& index,
                               const Selection& selection, const ResultsDirectory::Report& report) {
  std::vector<Selected> found;
  const auto add = [&](InvalidatedEvaluation&& evaluation, const Selectable& one) {
    if (!selects(selection, one)) return;
    found.push_back({std::move(evaluation), cat(one.challenge, "@", one.challenge_version),
                     std::string(one.node), std::string(one.started)});
  };
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) {
      add({submission.number, one.number, one.id, submission.identity.run, one.verdict},
          selectable(index, submission, one));
    }
  }
  for (const auto& [number, record, facts] : read_play_off_facts(results, report)) {
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const PlayOffMember& member = record.others[i];
      add({member.submission, member.evaluation, facts[i].id, member.run, facts[i].verdict, number},
          selectable(member, facts[i]));
    }
  }
  return found;
}

// Copies have the measurement too, and what is said of one submission is not said of them.
void say_copies(const ScoreIndex& index, const std::vector<Selected>& found) {
  std::set<std::pair<int, int>> chosen;
  std::set<std::string_view> ids;
  for (const Selected& one : found) {
    if (one.evaluation.play_off) continue;
    chosen.emplace(one.evaluation.submission, one.evaluation.evaluation);
    ids.insert(one.evaluation.id);
  }
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) {
      if (!ids.contains(one.id) || chosen.contains({submission.number, one.number})) continue;
      say(cat("submission ", submission.number, " of ", submission.identity.run,
              " has the same files and shares a measurement, which counts there on; --evaluation ",
              one.id, " is about all that share it"));
    }
  }
}

// That began, by a clock that was ahead, after all that can be said of a time.
void say_to_come(const ScoreIndex& index, const Selection& asked, const Selection& selection) {
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) {
      const Selectable here = selectable(index, submission, one);
      if (!selects(asked, here) || selects(selection, here)) continue;
      say(cat("submission ", submission.number, " of ", printable(submission.identity.run),
              ": its evaluation ", one.number, " began at ", one.started,
              ", which is to come, so it counts on; --evaluation ", one.id, " is about it"));
    }
  }
}

void print_selected(const InvalidateOptions& options, int number,
                    const std::vector<Selected>& found) {
  std::vector<InvalidatedEvaluation> list;
  std::vector<std::vector<std::string>> rows = {
      {"submission", "evaluation", "run", "challenge", "node", "judged", "verdict"}};
  for (const auto& [evaluation, challenge, node, started] : found) {
    const std::string verdict(name(evaluation.verdict));
    rows.push_back({std::to_string(evaluation.submission),
                    cat(evaluation.evaluation,
                        evaluation.play_off ? cat(", play-off ", *evaluation.play_off) : ""),
                    printable(evaluation.run), challenge, printable(node), started, verdict});
    list.push_back(evaluation);
  }
  if (options.json) {
    std::cout << print_json(invalidated_json(number, list));
  } else if (!found.empty()) {
    std::cout << aligned(rows);
  }
}

void print_list(const InvalidateOptions& options, const Records<Invalidation>& records) {
  if (options.json) {
    std::cout << print_json(invalidations_json(records));
    return;
  }
  if (records.empty()) say("nothing is invalid");
  for (const auto& [number, record] : records) {
    const Json::Object selection = selection_table().write(record.selection);
    std::cout << number << "  " << record.made << "  " << printable(record.reason) << "\n   "
              << printable(print_flat_json(Json{selection})) << "\n";
  }
}

int invalidate_command(const InvalidateOptions& options) {
  const ResultsDirectory results(options.results);
  LeftOut left_out;
  const auto records =
      standing(read_records(results, kInvalidationRecord, invalidation_table(), left_out.report()));
  if (options.list) {
    print_list(options, records);
    return left_out.status();
  }
  Invalidation record;
  record.made = utc_now();
  if (options.undo != 0) {
    if (options.preview || !options.reason.empty() || options.selection != Selection{}) {
      throw Error(Fault::usage,
                  "--undo takes back all that is recorded under a number; it goes alone");
    }
    require_record(records, options.undo, "invalidation");
    record.takes_back = options.undo;
    const int number =
        add_record(results, kInvalidationRecord, Json{invalidation_table().write(record)});
    say(cat("recorded as ", number, ": invalidation ", options.undo, " is taken back"));
    return left_out.status();
  }
  record.selection = selection_of(options);
  if (record.selection == Selection{}) {
    throw Error(Fault::usage,
                "say which evaluations, by --submission, --run, --node or others; --list shows "
                "what is invalid");
  }
  record.reason = options.reason;
  if (record.reason.empty() && !options.preview) {
    throw Error(Fault::usage, "--reason is missing; it is shown wherever the evaluations are");
  }
  // What is judged from now on counts again, so now is over when this ends.
  if (!options.preview) record.made = utc_now_and_over();
  const Selection asked = record.selection;
  // What one evaluation is called, no other will be, whatever its clock said.
  if (asked.evaluation.empty() && (asked.to.empty() || asked.to > record.made)) {
    record.selection.to = record.made;
  }
  const Json json = record_json(invalidation_table(), record, kInvalidationRecord);
  ScoreIndex index(results, left_out.report());
  index.save();
  say_to_come(index, asked, record.selection);
  const auto found = selected(results, index, record.selection, left_out.report());
  if (found.empty()) throw Error(Fault::usage, "no evaluation is like that; nothing is recorded");
  const int number = options.preview ? 0 : add_record(results, kInvalidationRecord, json);
  print_selected(options, number, found);
  say_copies(index, found);
  say(options.preview ? cat(found.size(), " evaluations; nothing is recorded")
                      : cat("recorded as ", number, ": ", found.size(),
                            " evaluations do not count; --undo ", number, " takes it back"));
  return left_out.status();
}

}  // namespace

void add_invalidate(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<InvalidateOptions>(
      app, "invalidate", "Say which evaluations do not count, and why; nothing is deleted",
      command);
  add_select_options(*command, *options);
  command->add_option("--reason", options->reason, "Why; shown wherever the evaluations are")
      ->type_name("TEXT");
  command->add_flag("--preview", options->preview, "Only show which evaluations it would be");
  command->add_flag("--list", options->list, "Show what is invalid, with numbers and reasons");
  command->add_option("--undo", options->undo, "Take back the one with this number")
      ->type_name("NUMBER")
      ->default_str("none")
      ->check(CLI::PositiveNumber);
  command->callback([=, &status] { status = invalidate_command(*options); });
}

}  // namespace kjudge
