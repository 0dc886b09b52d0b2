// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.h"

#include <iostream>

#include "file.h"
#include "judge/report.h"
#include "option_value.h"
#include "options.h"
#include "progress.h"
#include "score/result_json.h"
#include "store/results.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

struct ReplayCommandOptions : DeviceOptions {
  std::string submission, baseline, reference, again;
  VariantRequest only;
  int pairs = kRounds * kPairsPerRound;
};

int replay_command(const ReplayCommandOptions& options) {
  for (const std::string& path : {options.submission, options.baseline, options.reference}) {
    require_input(path);
  }
  if (options.submission.empty() && options.again.empty()) {
    throw Error(Fault::usage, "give --submission, or --again with an evaluation's folder");
  }
  const auto [challenge, driver] = choose(options, "");
  ReplayBundles bundles{options.reference, options.baseline, options.submission};
  if (bundles.submission.empty()) bundles.submission = fs::path(options.again) / "bundle.kjb";
  ProgressLine line;
  ReplayOptions replay;
  replay.only = options.only;
  replay.device = options.device;
  set_pairs(replay, options.pairs);
  if (!options.again.empty()) {
    const ReplaySecret secret = read_replay_secret(options.again);
    replay.evaluation = secret.evaluation;
    replay.secret = secret.secret;
    replay.order_seed = secret.order_seed;
    const fs::path result = fs::path(options.again) / "result.json";
    if (replay.only.all_shapes() && fs::exists(result)) {
      replay.only = result_from_json(read_file(result), result).variant;
    }
  }
  const Evaluation evaluation =
      replay_bundles(driver, challenge, bundles, cache_directory(), replay,
                     [&](const Progress& now) { line.show(now); });
  line.wipe();
  std::cout << (options.json ? result_to_json(evaluation) : evaluation_table(evaluation));
  return status_of(evaluation);
}

}  // namespace

void add_replay(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ReplayCommandOptions>(
      app, "replay", "Check and time a recorded submission; runs no Python of a contestant",
      command);
  command->add_option("--submission", options->submission, "Its bundle")->type_name("FILE");
  command
      ->add_option("--again", options->again,
                   "An evaluation's folder in a results directory: on its hidden inputs")
      ->check(CLI::ExistingDirectory);
  command->add_option("--baseline", options->baseline, "A bundle; else the challenge's baseline")
      ->type_name("FILE");
  command->add_option("--reference", options->reference, "A bundle; else the challenge's reference")
      ->type_name("FILE");
  add_device_options(*command, *options);
  add_only_options(*command, options->only);
  command->add_option("--pairs", options->pairs, "Pairs of each shape")->check(integer_in(1, 3000));
  command->callback([=, &status] { status = replay_command(*options); });
}

}  // namespace kjudge
