// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>

#include "error.h"
#include "judge/judged_json.h"
#include "judge/profile_shape.h"
#include "judge/queue.h"
#include "judge/report.h"
#include "judge/sandbox.h"
#include "option_value.h"
#include "options.h"
#include "progress.h"
#include "web/publisher.h"

namespace kjudge {
namespace {

struct JudgeOptions : DeviceOptions {
  std::string results, from, pages, profile, keep_bundles = "all";
  bool unsafe = false, retry = false, watch = false;
  int lease_s = 120;
};

// Empty: nothing is profiled. Unless asked for, that there is no profiler is no reason not to
// judge.
std::filesystem::path profiler(const JudgeOptions& options, const Driver& driver) {
  if (options.profile == "none") return {};
  try {
    return ncu_for(driver);
  } catch (const Error&) {
    if (!options.profile.empty()) throw;
    return {};
  }
}

int judge_command(const JudgeOptions& options) {
  const auto [challenge, driver] = choose(options, options.from);
  std::optional<Sandbox> sandbox;
  if (!options.unsafe) {
    sandbox.emplace(Sandbox::Wanted{
        driver, options.device, {options.results, options.from, cache_directory()}});
  }
  QueueOptions queue;
  queue.results = options.results;
  queue.from = options.from;
  queue.cache = cache_directory();
  queue.replay.device = options.device;
  queue.retry = options.retry;
  queue.watch = options.watch;
  queue.lease = std::chrono::seconds(options.lease_s);
  queue.keep_bundles = parse_keep_bundles(options.keep_bundles);
  queue.ncu = profiler(options, driver);
  if (!options.profile.empty()) queue.profile_set = options.profile;
  queue.sandbox = sandbox ? &*sandbox : nullptr;
  ProgressLine progress;
  QueueReports reports;
  reports.line = [&](const std::string& line) {
    progress.wipe();
    std::cerr << "kjudge: " << printable(line) << std::endl;
  };
  reports.progress = [&](const Progress& now) { progress.show(now); };
  std::optional<ResultsDirectory> results;
  std::optional<Publisher> publisher;
  if (!options.pages.empty()) {
    results.emplace(ResultsDirectory::make(options.results));
    publisher.emplace(*results, options.pages, std::vector{challenge}, reports.line);
    reports.waiting = [&](const std::vector<Waiting>& waiting) { publisher->waiting(waiting); };
    reports.running = [&](const StoredSubmission& submission, const RunningEvaluation& running) {
      publisher->running(submission, running);
    };
    reports.judged = [&](const JudgedSubmission& judged) {
      publisher->judged(judged.identity.number);
    };
  }
  const auto done = judge_queue(driver, challenge, queue, reports);
  progress.wipe();
  if (!done) {
    std::cerr << "kjudge: " << options.results
              << ": another kjudge judges into it with this device; try again later\n";
    return exit_try_later;
  }
  if (done->elsewhere > 0) {
    std::cerr << "kjudge: " << done->elsewhere << " submissions are with other judges\n";
  }

  if (options.json) {
    std::cout << print_json(judged_json(*done));
  } else if (done->judged.empty() && done->elsewhere == 0) {
    std::cerr << "kjudge: " << options.results << ": nothing was waiting\n";
  } else if (!done->judged.empty()) {
    std::vector<std::vector<std::string>> rows = {{"submission", "run", "verdict"}};
    for (const JudgedSubmission& judged : done->judged) {
      rows.push_back({std::to_string(judged.identity.number), printable(judged.identity.run),
                      std::string(name(judged.evaluation.verdict))});
    }
    std::cout << aligned(rows);
  }
  if (done->judge_errors > 0) return exit_judge_error;
  return done->refused.empty() ? exit_done : exit_not_accepted;
}

}  // namespace

void add_judge(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<JudgeOptions>(
      app, "judge", "Judge what waits in a results directory; killed, it picks up where it was",
      command);
  add_results_option(*command, options->results, "Results directory; made if need be");
  command
      ->add_option(
          "--from", options->from,
          "First put the submissions of this folder into the queue: each .py or .cu file, each "
          "archive, each folder with submission.py or submission.cu")
      ->check(CLI::ExistingDirectory);
  add_device_options(*command, *options);
  command
      ->add_option("--pages", options->pages,
                   "Keep the pages there up to date, of what waits, runs and was judged; 'kjudge "
                   "pages' writes all of them")
      ->type_name("FOLDER")
      ->envname("KJUDGE_PAGES");
  command
      ->add_option("--profile", options->profile,
                   "What ncu counts in the kernels of what is accepted, after it was judged")
      ->check(CLI::IsMember({"none", "basic", "full"}))
      ->default_str("basic where ncu is");
  command
      ->add_option("--keep-bundles", options->keep_bundles,
                   "Recordings that are kept: all; of each run's best submission; of that and "
                   "those of so many days")
      ->type_name("all|best|DAYS")
      ->envname("KJUDGE_KEEP_BUNDLES");
  command->add_flag("--unsafe", options->unsafe,
                    "Run submissions without a sandbox: as you, with your files and your network");
  command->add_flag("--retry", options->retry,
                    "Judge again what ended in a judge error: when its cause is mended");
  command->add_flag("--watch", options->watch, "Stay, and judge what comes in, until interrupted");
  command
      ->add_option("--lease", options->lease_s,
                   "Seconds without a sign of life after which another judge takes over what this "
                   "one judges")
      ->type_name("SECONDS")
      ->check(integer_in(1, 86400));
  command->callback([=, &status] { status = judge_command(*options); });
}

}  // namespace kjudge
