// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>

#include "judge/play_off.h"
#include "judge/report.h"
#include "left_out.h"
#include "progress.h"
#include "store/challenges.h"

namespace kjudge {
namespace {

struct PlayOffOptions : DeviceOptions {
  std::string results, variant;
  bool unsafe = false;
};

// Of what is ranked, where the directory keeps the challenge; else empty.
std::string kept_folder(const ResultsDirectory& results,
                        const std::optional<VariantRequest>& request, LeftOut& left_out) {
  ScoreIndex index(results, left_out.report());
  index.save();
  const auto found = make_standings(read_source(results, index, left_out.report()), request);
  if (!found) return request ? request->challenge : "";
  const auto folder =
      kept_challenge_folder(results, found->terms.challenge, found->terms.challenge_version);
  return std::filesystem::exists(folder) ? folder.string() : found->terms.challenge;
}

int playoff_command(const PlayOffOptions& options) {
  const ResultsDirectory results(options.results);
  std::optional<VariantRequest> request;
  if (!options.variant.empty()) request = parse_request(options.variant);
  DeviceOptions device = options;
  ProgressLine progress;
  QueueReports reports;
  reports.line = [&](const std::string& line) {
    progress.wipe();
    say(line);
  };
  reports.progress = [&](const Progress& now) { progress.show(now); };
  LeftOut left_out(reports.line);
  reports.left_out = left_out.report();
  if (device.challenge.empty()) device.challenge = kept_folder(results, request, left_out);
  const auto [challenge, driver] = choose(device, "");
  JudgeAgainOptions again;
  again.cache = cache_directory();
  again.device = options.device;
  if (!options.unsafe) {
    again.sandbox = sandbox_when_needed(
        {driver, options.device, {options.results, challenge.folder, cache_directory()}});
  }
  const PlayOffDone done = play_off(driver, challenge, results, request, again, reports);
  progress.wipe();
  if (options.json) {
    std::cout << print_json(Json{played_off_table().write(done)});
  } else if (done.judged_again.empty() && done.play_offs.empty() && done.failed == 0 &&
             done.elsewhere == 0) {
    say("the first was judged twice, and nobody is tied with it");
  }
  if (done.failed > 0) return exit_judge_error;
  return done.elsewhere > 0 ? exit_try_later : left_out.status();
}

}  // namespace

void add_playoff(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<PlayOffOptions>(
      app, "playoff", "Judge a new leader again, and play off those that are tied with it",
      command);
  add_results_option(*command, options->results);
  command
      ->add_option("variant", options->variant,
                   "Only of this: CHALLENGE[:dtype[:gpu[:shape]]]; else of all shapes, and then of "
                   "each part that has a leaderboard")
      ->type_name("VARIANT");
  add_device_options(*command, *options);
  command->add_flag("--unsafe", options->unsafe,
                    "Where a submission must be captured again, run it without a sandbox");
  command->callback([=, &status] { status = playoff_command(*options); });
}

}  // namespace kjudge
