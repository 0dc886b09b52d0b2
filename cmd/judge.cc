// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>

#include "judge/queue.h"
#include "judge/report.h"
#include "judge/sandbox.h"
#include "options.h"
#include "progress.h"

namespace kjudge {
namespace {

struct JudgeOptions : DeviceOptions {
  std::string results, from;
  bool unsafe = false;
};

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
  queue.sandbox = sandbox ? &*sandbox : nullptr;
  ProgressLine progress;
  const auto judged = judge_queue(
      driver, challenge, queue,
      [&](const std::string& line) {
        progress.wipe();
        std::cerr << "kjudge: " << printable(line) << std::endl;
      },
      [&](const Progress& now) { progress.show(now); });
  progress.wipe();
  if (!judged) {
    std::cerr << "kjudge: " << options.results
              << ": another kjudge judges into it; try again later\n";
    return exit_try_later;
  }

  bool judge_errors = false;
  Json::List list;
  std::vector<std::vector<std::string>> rows = {{"submission", "run", "verdict"}};
  for (const auto& [identity, evaluation] : *judged) {
    judge_errors = judge_errors || evaluation.verdict == Verdict::judge_error;
    list.push_back(Json{Json::Object{{"number", Json{static_cast<std::int64_t>(identity.number)}},
                                     {"run", Json{identity.run}},
                                     {"verdict", Json{std::string(name(evaluation.verdict))}},
                                     {"message", Json{evaluation.message}}}});
    rows.push_back({std::to_string(identity.number), printable(identity.run),
                    std::string(name(evaluation.verdict))});
  }
  if (options.json) {
    std::cout << print_json(Json{Json::Object{{"format", Json{std::string("kjudge-judged/1")}},
                                              {"judged", Json{std::move(list)}}}});
  } else if (judged->empty()) {
    std::cerr << "kjudge: " << options.results << ": nothing was waiting\n";
  } else {
    std::cout << aligned(rows);
  }
  return judge_errors ? exit_judge_error : exit_done;
}

}  // namespace

void add_judge(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<JudgeOptions>(
      app, "judge", "Judge what waits in a results directory; killed, it picks up where it was",
      command);
  command->add_option("results", options->results, "Results directory; made if need be")
      ->type_name("FOLDER")
      ->required()
      ->envname("KJUDGE_RESULTS");
  command
      ->add_option(
          "--from", options->from,
          "First put the submissions of this folder into the queue: each .py or .cu file, each "
          "archive, each folder with submission.py or submission.cu")
      ->check(CLI::ExistingDirectory);
  add_device_options(*command, *options);
  command->add_flag("--unsafe", options->unsafe,
                    "Run submissions without a sandbox: as you, with your files and your network");
  command->callback([=, &status] { status = judge_command(*options); });
}

}  // namespace kjudge
