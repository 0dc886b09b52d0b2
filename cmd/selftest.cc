// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>

#include "judge/report.h"
#include "option_value.h"
#include "options.h"
#include "progress.h"
#include "score/result_json.h"
#include "store/submission_files.h"

namespace kjudge {
namespace {

struct SelftestOptions : DeviceOptions {
  std::string submission;
  VariantRequest only;
  int pairs = kRounds * kPairsPerRound;
  bool eager = false;
};

int selftest(const SelftestOptions& options) {
  std::filesystem::path submission = options.submission;
  if (submission.empty()) submission = entry_file(".");
  const auto [challenge, driver] = choose(options, submission);
  if (submission.empty()) submission = challenge.folder / "submission.py";

  EvaluateOptions evaluate_options;
  evaluate_options.submission = submission;
  evaluate_options.cache = cache_directory();
  evaluate_options.eager = options.eager;
  evaluate_options.replay.only = options.only;
  evaluate_options.replay.device = options.device;
  set_pairs(evaluate_options.replay, options.pairs);

  ProgressLine line;
  const Evaluation evaluation =
      evaluate(driver, challenge, evaluate_options, [&](const Progress& now) { line.show(now); });
  line.wipe();
  if (!evaluation.log.empty() && !options.json)
    std::cerr << indented(printable(evaluation.log), "  ") << std::flush;
  if (options.json) {
    std::cout << result_to_json(evaluation);
  } else if (options.eager && evaluation.verdict == Verdict::accepted) {
    std::cout << "ran to its end; nothing was checked or timed\n";
  } else {
    std::cout << evaluation_table(evaluation);
  }
  return status_of(evaluation);
}

}  // namespace

void add_selftest(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<SelftestOptions>(
      app, "selftest", "Judge a submission here, as the contest would", command);
  command
      ->add_option("submission", options->submission,
                   "A Python or CUDA C++ file, or a folder or archive with submission.py or "
                   "submission.cu; else that of the current folder, else the challenge's own")
      ->type_name("FILE|FOLDER");
  add_device_options(*command, *options);
  add_only_options(*command, options->only);
  command
      ->add_option("--pairs", options->pairs, "Pairs of each shape; fewer are quicker, not ranked")
      ->check(integer_in(1, 3000));
  command->add_flag(
      "--eager", options->eager,
      "Call prepare and kernel_fn uncaptured, for debuggers; checks and times nothing");
  command->callback([=, &status] { status = selftest(*options); });
}

}  // namespace kjudge
