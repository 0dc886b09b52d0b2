// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>

#include "error.h"
#include "judge/device.h"
#include "judge/jobs.h"
#include "judge/judged_json.h"
#include "judge/profile_shape.h"
#include "judge/queue.h"
#include "judge/report.h"
#include "judge/sandbox.h"
#include "left_out.h"
#include "option_value.h"
#include "options.h"
#include "progress.h"
#include "web/publisher.h"

namespace kjudge {
namespace {

struct JudgeOptions : DeviceOptions {
  std::string results, from, variant, pages, profile, keep_bundles = "all";
  bool unsafe = false, retry = false, watch = false;
  int lease_s = 120, jobs = 1;
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

// What those of --from ask for.
VariantRequest variant_of(const JudgeOptions& options, const Challenge& challenge) {
  if (options.variant.empty()) return {};
  const VariantRequest variant = parse_request(options.variant);
  if (variant.challenge != challenge.name) {
    throw Error(Fault::usage,
                cat("--variant ", options.variant, ": expected one of challenge ", challenge.name));
  }
  return wanted_of(challenge, variant);
}

QueueOptions queue_options(const JudgeOptions& options, const Challenge& challenge,
                           const Driver& driver) {
  QueueOptions queue;
  queue.results = options.results;
  queue.from = options.from;
  queue.variant = variant_of(options, challenge);
  queue.cache = cache_directory();
  queue.replay.device = options.device;
  queue.retry = options.retry;
  queue.watch = options.watch;
  queue.lease = std::chrono::seconds(options.lease_s);
  queue.keep_bundles = parse_keep_bundles(options.keep_bundles);
  queue.ncu = profiler(options, driver);
  if (!options.profile.empty()) queue.profile_set = options.profile;
  return queue;
}

void print(const JudgedSummary& done, const JudgeOptions& options, bool nothing_elsewhere) {
  if (options.json) {
    std::cout << print_json(Json{judged_table().write(done)});
  } else if (!done.judged.empty()) {
    std::vector<std::vector<std::string>> rows = {{"submission", "run", "verdict"}};
    for (const JudgedRow& judged : done.judged) {
      rows.push_back({std::to_string(judged.number), printable(judged.run),
                      std::string(name(judged.verdict))});
    }
    std::cout << aligned(rows);
  } else if (nothing_elsewhere) {
    say(options.results + ": nothing was waiting");
  }
}

// The first of those that a job's evaluations take.
int device_of(const JudgeOptions& options, const Challenge& challenge, int job) {
  return options.device + job * challenge.gpus_per_evaluation;
}

// A judge of one device, as one of several.
std::vector<std::string> arguments_of(const JudgeOptions& options, const Challenge& challenge,
                                      const Driver& driver, int job) {
  std::vector<std::string> arguments = {"judge",
                                        options.results,
                                        "--json",
                                        "--challenge",
                                        std::filesystem::absolute(challenge.folder),
                                        "--driver",
                                        std::string(name(driver.kind)),
                                        "--device",
                                        std::to_string(device_of(options, challenge, job)),
                                        "--lease",
                                        std::to_string(options.lease_s),
                                        "--keep-bundles",
                                        options.keep_bundles};
  // Of a watch each finds what is new; one is enough.
  if (options.watch && !options.from.empty() && job == 0) {
    arguments.insert(arguments.end(), {"--from", options.from});
    if (!options.variant.empty()) arguments.insert(arguments.end(), {"--variant", options.variant});
  }
  if (!options.pages.empty()) arguments.insert(arguments.end(), {"--pages", options.pages});
  if (!options.profile.empty()) arguments.insert(arguments.end(), {"--profile", options.profile});
  for (const auto& [wanted, flag] :
       {std::pair(options.unsafe, "--unsafe"), std::pair(options.retry, "--retry"),
        std::pair(options.watch, "--watch")}) {
    if (wanted) arguments.push_back(flag);
  }
  return arguments;
}

// Where several fail, the worst cause goes before.
int combined(const std::vector<JobEnd>& ends) {
  for (const int code : {exit_usage, exit_judge_error, exit_io, exit_malformed}) {
    for (const JobEnd& end : ends) {
      if (end.status.signal == 0 && end.status.code == code) return code;
    }
  }
  for (const JobEnd& end : ends) {
    if (end.status.signal != 0) return exit_judge_error;
  }
  const bool all_later = std::all_of(ends.begin(), ends.end(), [](const JobEnd& end) {
    return end.status.code == exit_try_later;
  });
  return all_later ? exit_try_later : exit_done;
}

int judge_with_jobs(const JudgeOptions& options, const Challenge& challenge, const Driver& driver) {
  identify(driver, device_of(options, challenge, options.jobs) - 1);  // there are so many
  LeftOut left_out;
  QueueReports reports;
  reports.line = say;
  reports.left_out = left_out.report();
  JudgedSummary done;
  if (!options.from.empty() && !options.watch) {
    done.refused =
        fill_queue(driver, challenge, queue_options(options, challenge, driver), reports);
  }
  std::vector<std::vector<std::string>> jobs;
  for (int job = 0; job < options.jobs; ++job) {
    jobs.push_back(arguments_of(options, challenge, driver, job));
  }
  const std::vector<JobEnd> ends = run_jobs(jobs, reports.line);
  for (std::size_t job = 0; job < ends.size(); ++job) {
    const auto& [status, output] = ends[job];
    const std::string who =
        cat("the judge of device ", device_of(options, challenge, static_cast<int>(job)));
    if (status.signal != 0) say(cat(who, " was ", describe(status), "; judge again"));
    if (output.empty() || status.signal != 0) continue;
    const Json json = parse_json(output, who, Fault::bug);
    JudgedSummary its = judged_table().read(JsonCursor(json, who, Fault::bug));
    std::move(its.judged.begin(), its.judged.end(), std::back_inserter(done.judged));
  }
  print(done, options, true);
  const int status = combined(ends);
  if (status == exit_done && left_out.status() != exit_done) return left_out.status();
  return status == exit_done && !done.refused.empty() ? exit_not_accepted : status;
}

int judge_command(const JudgeOptions& options) {
  const auto [challenge, driver] = choose(options, options.from);
  if (options.jobs > 1) return judge_with_jobs(options, challenge, driver);
  std::optional<Sandbox> sandbox;
  if (!options.unsafe) {
    sandbox.emplace(
        Sandbox::Wanted{driver,
                        options.device,
                        {options.results, options.from, challenge.folder, cache_directory()}});
  }
  QueueOptions queue = queue_options(options, challenge, driver);
  queue.sandbox = sandbox ? &*sandbox : nullptr;
  ProgressLine progress;
  QueueReports reports;
  reports.line = [&](const std::string& line) {
    progress.wipe();
    say(line);
  };
  LeftOut left_out(reports.line);
  reports.left_out = left_out.report();
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
    say(options.results + ": another kjudge judges into it with this device; try again later");
    return exit_try_later;
  }
  if (done->elsewhere > 0) say(cat(done->elsewhere, " submissions are with other judges"));
  print(summary_of(*done), options, done->elsewhere == 0 && done->for_others == 0);
  if (done->judge_errors > 0) return exit_judge_error;
  if (left_out.status() != exit_done) return left_out.status();
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
  command
      ->add_option("--variant", options->variant,
                   "What the submissions of --from ask for: CHALLENGE[:dtype[:gpu[:shape]]]; else "
                   "all of the challenge")
      ->type_name("VARIANT")
      ->needs("--from");
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
  command
      ->add_option("--jobs", options->jobs,
                   "Judges at the same time, each with a device of its own, or as many as the "
                   "challenge wants, from --device on")
      ->type_name("NUMBER")
      ->check(integer_in(1, 64));
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
