// SPDX-License-Identifier: Apache-2.0
#include "select.h"

#include "error.h"

namespace kjudge {

void add_select_options(CLI::App& command, SelectOptions& options) {
  command.add_option("results", options.results, "Results directory")
      ->type_name("FOLDER")
      ->required()
      ->envname("KJUDGE_RESULTS");
  Selection& selection = options.selection;
  command.add_option("--submission", selection.submission, "Only those of this submission")
      ->type_name("NUMBER")
      ->default_str("any")
      ->check(CLI::PositiveNumber);
  command.add_option("--evaluation", selection.evaluation, "Only the one with this UUID")
      ->type_name("UUID");
  command.add_option("--run", selection.run, "Only those of this run")->type_name("NAME");
  command.add_option("--challenge", selection.challenge, "Only those of this challenge")
      ->type_name("NAME");
  command
      .add_option("--challenge-version", selection.challenge_version,
                  "Only those of this version of it")
      ->type_name("NUMBER")
      ->default_str("any")
      ->check(CLI::PositiveNumber);
  command.add_option("--method", selection.method, "Only those measured by this method")
      ->type_name("NUMBER")
      ->default_str("any")
      ->check(CLI::PositiveNumber);
  command.add_option("--node", selection.node, "Only those judged on this machine")
      ->type_name("NAME");
  command.add_option("--gpu", selection.gpu, "Only those judged on this kind of GPU, or arch")
      ->type_name("NAME");
  command
      .add_option("--from", selection.from,
                  "Only those that began then or later: 2026-11-30 or 2026-11-30T12:00:00Z, UTC")
      ->type_name("TIME");
  command.add_option("--to", selection.to, "Only those that began then or before")
      ->type_name("TIME");
}

Selection selection_of(const SelectOptions& options) {
  Selection selection = options.selection;
  if (selection.challenge.find_first_of(":@") != std::string::npos) {
    throw Error(Fault::usage,
                cat("--challenge ", selection.challenge,
                    ": expected the name of a challenge alone; --challenge-version and --gpu say "
                    "more, and --run, --submission or --evaluation pick what is part of it"));
  }
  selection.from = time_of(selection.from, DayEnd::first);
  selection.to = time_of(selection.to, DayEnd::last);
  return selection;
}

}  // namespace kjudge
