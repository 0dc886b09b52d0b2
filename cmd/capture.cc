// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>

#include "error.h"
#include "judge/capture_outcome_json.h"
#include "judge/device.h"
#include "judge/report.h"
#include "judge/sandbox.h"
#include "options.h"

namespace kjudge {
namespace {

struct CaptureCommandOptions : DeviceOptions {
  std::string submission, bundle;
  VariantRequest only;
  std::string role = "submission";
  bool sandbox = false;
};

CaptureRole parse_role(const std::string& text) {
  for (CaptureRole role :
       {CaptureRole::submission, CaptureRole::baseline, CaptureRole::reference}) {
    if (text == name(role)) return role;
  }
  throw Error(Fault::usage, cat("--role ", text, ": expected submission, baseline or reference"));
}

int capture_command(const CaptureCommandOptions& options) {
  const auto [whole, driver] = choose(options, options.submission);
  CaptureOptions capture_options;
  capture_options.role = parse_role(options.role);
  capture_options.submission = options.submission;
  capture_options.bundle = options.bundle;
  capture_options.only = options.only;
  capture_options.device = options.device;
  if (capture_options.role == CaptureRole::submission && options.submission.empty()) {
    throw Error(Fault::usage, "capture: no submission given");
  }
  const Challenge challenge = for_arch(whole, identify(driver, options.device).arch);
  require_shapes(challenge, options.only);
  std::optional<Sandbox> sandbox;
  if (options.sandbox) {
    sandbox.emplace(Sandbox::Wanted{driver, options.device, {challenge.folder, cache_directory()}});
    capture_options.sandbox = &*sandbox;
  }
  const CaptureOutcome outcome = capture(driver, challenge, capture_options);
  const bool accepted = outcome.verdict == Verdict::accepted;
  if (options.json) {
    std::cout << print_json(capture_outcome_json(outcome, options.bundle));
  } else {
    std::cerr << indented(printable(outcome.log), "  ");
    std::cout << (accepted ? cat("accepted: ", options.bundle)
                           : cat(name(outcome.verdict), ": ", hanging(outcome.message)))
              << "\n";
  }
  return accepted ? exit_done : exit_not_accepted;
}

}  // namespace

void add_capture(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<CaptureCommandOptions>(
      app, "capture", "Record a submission's kernels into a bundle", command);
  command
      ->add_option("submission", options->submission,
                   "A Python or CUDA C++ file, or a folder or archive with submission.py or "
                   "submission.cu")
      ->type_name("FILE|FOLDER");
  command->add_option("-o,--output", options->bundle, "The bundle to write")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--role", options->role,
                   "Whose code: a contestant's, or one of the challenge's own")
      ->check(CLI::IsMember({"submission", "baseline", "reference"}));
  add_device_options(*command, *options);
  add_only_options(*command, options->only);
  command->add_flag("--sandbox", options->sandbox,
                    "Run the submission's code in a sandbox, as judge does");
  command->callback([=, &status] { status = capture_command(*options); });
}

}  // namespace kjudge
