// SPDX-License-Identifier: Apache-2.0
#include "judge/export.h"

#include <iostream>

#include "judge/report.h"
#include "left_out.h"
#include "select.h"

namespace kjudge {
namespace {

struct ExportCommandOptions : SelectOptions {
  std::string output;
  bool without_cubins = false;
};

int export_command(const ExportCommandOptions& options) {
  const ResultsDirectory results(options.results);
  ExportOptions chosen;
  chosen.selection = selection_of(options);
  chosen.cubins = !options.without_cubins;
  LeftOut left_out;
  ExportCounts counts = export_results(results, chosen, options.output, left_out.report());
  counts.left_out = left_out.lines();
  if (options.json) {
    std::cout << print_json(Json{exported_table().write(counts)});
  } else {
    say(cat(options.output, ": ", counts.submissions, " submissions, ", counts.evaluations,
            " evaluations, ", counts.profiles, " profiles, ", counts.cubins, " cubins"));
  }
  return left_out.status();
}

}  // namespace

void add_export(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ExportCommandOptions>(
      app, "export", "Write a results directory as data for others: JSON lines, zstd", command);
  add_select_options(*command, *options);
  command->add_option("-o,--output", options->output, "File to write, such as contest.jsonl.zst")
      ->type_name("FILE")
      ->required();
  command->add_flag("--without-cubins", options->without_cubins,
                    "Leave out machine code also where it may be published");
  command->callback([=, &status] { status = export_command(*options); });
}

}  // namespace kjudge
