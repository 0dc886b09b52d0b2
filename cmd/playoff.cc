// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>
#include <set>
#include <string>

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

// Challenges that something was judged of, in the order of their names.
std::set<std::string> judged_challenges(const ResultsDirectory& results, LeftOut& left_out) {
  ScoreIndex index(results, left_out.report());
  index.save();
  std::set<std::string> names;
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) names.insert(one.terms->challenge);
  }
  return names;
}

// Of what is ranked, where the directory keeps the challenge; else its name.
std::string kept_folder(const ResultsDirectory& results, const VariantRequest& request,
                        LeftOut& left_out) {
  const ScoreIndex index(results, left_out.report());
  const auto found = make_standings(read_source(results, index, left_out.report()), request);
  if (!found) return request.challenge;
  const auto folder =
      kept_challenge_folder(results, found->terms.challenge, found->terms.challenge_version);
  return std::filesystem::exists(folder) ? folder.string() : found->terms.challenge;
}

// Of the request's variant, or of all that there is of challenge `name`; where that is empty, of
// the one of the options.
PlayOffDone play_off_challenge(const PlayOffOptions& options, const ResultsDirectory& results,
                               const std::optional<VariantRequest>& request,
                               const std::string& name, LeftOut& left_out) {
  DeviceOptions device = options;
  ProgressLine progress;
  QueueReports reports;
  reports.line = [&](const std::string& line) {
    progress.wipe();
    say(line);
  };
  reports.progress = [&](const Progress& now) { progress.show(now); };
  reports.left_out = left_out.report();
  if (device.challenge.empty()) {
    VariantRequest wanted = request.value_or(VariantRequest{});
    if (!request) wanted.challenge = name;
    device.challenge = kept_folder(results, wanted, left_out);
  }
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
  return done;
}

// Of every challenge. One that cannot be judged here, or not now, is told, and is no reason to
// leave the others as they are.
PlayOffDone play_off_all(const PlayOffOptions& options, const ResultsDirectory& results,
                         const std::set<std::string>& challenges, LeftOut& left_out) {
  PlayOffDone all;
  for (const std::string& name : challenges) {
    try {
      const PlayOffDone done = play_off_challenge(options, results, std::nullopt, name, left_out);
      all.judged_again.insert(all.judged_again.end(), done.judged_again.begin(),
                              done.judged_again.end());
      all.play_offs.insert(all.play_offs.end(), done.play_offs.begin(), done.play_offs.end());
      all.failed += done.failed;
      all.elsewhere += done.elsewhere;
    } catch (const Error& error) {
      if (challenges.size() == 1 || error.fault() == Fault::bug) throw;
      say(cat(printable(name), ": ", error.what()));
      const bool elsewhere = error.fault() == Fault::device || error.fault() == Fault::usage;
      all.failed += elsewhere ? 0 : 1;
    }
  }
  return all;
}

int playoff_command(const PlayOffOptions& options) {
  const ResultsDirectory results(options.results);
  LeftOut left_out;
  const auto challenges = judged_challenges(results, left_out);
  PlayOffDone done;
  if (!options.variant.empty()) {
    done = play_off_challenge(options, results, parse_request(options.variant), "", left_out);
  } else if (!options.challenge.empty()) {
    done = play_off_challenge(options, results, std::nullopt, "", left_out);
  } else {
    done = play_off_all(options, results, challenges, left_out);
  }
  if (options.json) {
    std::cout << print_json(Json{played_off_table().write(done)});
  } else if (done.judged_again.empty() && done.play_offs.empty() && done.failed == 0 &&
             done.elsewhere == 0) {
    say("nothing is to be done: whoever is first was judged twice, and nobody is tied that was not "
        "played off");
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
                   "Only of this: CHALLENGE[:dtype[:gpu[:shape]]]; else of every challenge, of all "
                   "shapes and then of each part that has a leaderboard")
      ->type_name("VARIANT");
  add_device_options(*command, *options);
  command->add_flag("--unsafe", options->unsafe,
                    "Where a submission must be captured again, run it without a sandbox");
  command->callback([=, &status] { status = playoff_command(*options); });
}

}  // namespace kjudge
