// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "judge/report.h"
#include "options.h"
#include "store/metric_counts.h"

namespace kjudge {
namespace {

struct MetricsOptions {
  bool json = false;
  std::string file;
};

int metrics_command(const MetricsOptions& options) {
  const auto counts = read_metric_counts(options.file);
  if (options.json) {
    std::cout << metric_counts_to_json(counts);
    return exit_done;
  }
  if (counts.empty()) {
    say("nobody has looked at a metric yet");
    return exit_done;
  }
  std::vector<std::vector<std::string>> rows = {{"metric", "opened", "rested"}};
  for (const MetricCount& one : counts) {
    rows.push_back({one.metric, std::to_string(one.opened), std::to_string(one.rested)});
  }
  std::cout << aligned(rows);
  return exit_done;
}

}  // namespace

void add_metrics(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<MetricsOptions>(
      app, "metrics", "Show which metrics of profiles visitors looked at", command);
  command->add_option("file", options->file, "What serve counted, by --count-metrics")
      ->type_name("FILE")
      ->required();
  command->callback([=, &status] { status = metrics_command(*options); });
}

}  // namespace kjudge
