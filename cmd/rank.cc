// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "judge/queue.h"
#include "judge/report.h"
#include "options.h"

namespace kjudge {
namespace {

struct RankOptions {
  bool json = false;
  std::string results;
};

int rank_command(const RankOptions& options) {
  const ResultsDirectory results(options.results);
  const auto ranking = rank(collect_entries(results, [](const std::string& line) {
    std::cerr << "kjudge: " << printable(line) << "\n";
  }));
  if (options.json) {
    std::cout << print_json(rank_json(ranking));
  } else if (ranking.empty()) {
    std::cerr << "kjudge: nothing here has a score yet\n";
  } else {
    std::cout << rank_table(ranking);
  }
  return exit_done;
}

}  // namespace

void add_rank(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<RankOptions>(
      app, "rank", "Order the runs of a results directory by their best score", command);
  command->add_option("results", options->results, "Results directory")
      ->type_name("FOLDER")
      ->required()
      ->envname("KJUDGE_RESULTS");
  command->callback([=, &status] { status = rank_command(*options); });
}

}  // namespace kjudge
