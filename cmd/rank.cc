// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "judge/rank_json.h"
#include "judge/rank_report.h"
#include "judge/report.h"
#include "left_out.h"

namespace kjudge {
namespace {

struct RankOptions {
  bool json = false;
  std::string results, variant, history;
};

int rank_command(const RankOptions& options) {
  const ResultsDirectory results(options.results);
  std::optional<VariantRequest> request;
  if (!options.variant.empty()) request = parse_request(options.variant);
  LeftOut left_out;
  ScoreIndex index(results, left_out.report());
  index.save();
  const StandingsSource source = read_source(results, index, left_out.report());
  const auto standings = make_standings(source, request);
  if (!standings) {
    if (options.json) {
      std::cout << print_json(standings_json(standings, index, left_out.lines()));
    } else {
      say("nothing here has a score yet");
    }
    return left_out.status();
  }
  if (!options.history.empty()) {
    const auto history = history_of(source, *standings, options.history);
    if (history.empty()) {
      throw Error(Fault::usage,
                  cat("--history ", options.history, ": this run has no evaluation of ",
                      standings_title(*standings)));
    }
    const std::string& run = index.find(history.front().submission)->identity.run;
    if (options.json) {
      std::cout << print_json(history_json(*standings, run, history, left_out.lines()));
    } else {
      say(standings_title(*standings));
      std::cout << history_table(history);
    }
    return left_out.status();
  }
  if (options.json) {
    std::cout << print_json(standings_json(standings, index, left_out.lines()));
    return left_out.status();
  }
  say(standings_title(*standings));
  for (const std::string& line : standings_remarks(*standings)) say(line);
  const Standings& rows = standings->standings;
  if (rows.ranked.empty() && rows.pending.empty()) say("nothing here has a score yet");
  if (!rows.ranked.empty() || !rows.pending.empty() || !standings->bars.empty()) {
    std::cout << standings_table(*standings, index);
  }
  return left_out.status();
}

}  // namespace

void add_rank(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<RankOptions>(
      app, "rank", "Order the runs of a results directory by their best score", command);
  add_results_option(*command, options->results);
  command
      ->add_option("variant", options->variant,
                   "CHALLENGE[@VERSION][:dtype[:gpu[:shape]]]; what is left out is that of the "
                   "newest evaluation, and all dtypes and shapes")
      ->type_name("VARIANT");
  command
      ->add_option("--history", options->history,
                   "Every evaluation of this run in the order they were judged")
      ->type_name("RUN");
  command->callback([=, &status] { status = rank_command(*options); });
}

}  // namespace kjudge
