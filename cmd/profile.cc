// SPDX-License-Identifier: Apache-2.0
#include "judge/profile_shape.h"

#include <filesystem>
#include <iostream>
#include <set>

#include "bundle/bundle.h"
#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/device_lock.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "options.h"
#include "progress.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

struct ProfileCommandOptions : DeviceOptions {
  std::string submission, bundle, shape, output, ncu_report;
  std::string set = "basic";
};

// That of the name, or the first. Of a bundle of part of the challenge one that it has.
const Shape& find_shape(const Challenge& challenge, const std::string& name,
                        const std::string& bundle) {
  std::set<std::string> recorded;
  if (!bundle.empty()) {
    const BundleReader reader(bundle);
    for (const CapturedShape& shape : reader.bundle().shapes) recorded.insert(shape.name);
  }
  bool is_here = false;
  for (const Shape& shape : challenge.shapes) {
    if (!name.empty() && shape.name != name) continue;
    if (bundle.empty() || recorded.contains(shape.name)) return shape;
    is_here = true;
  }
  if (!is_here) {
    throw Error(Fault::usage,
                cat("shape ", name, ": challenge ", challenge.name, " has no such shape here"));
  }
  std::string list;
  for (const std::string& one : recorded) list += cat(list.empty() ? "" : ", ", one);
  throw Error(Fault::usage,
              cat(bundle, ": has ", name.empty() ? "no shape for this device" : cat("no ", name),
                  "; what was recorded is ", list));
}

// Before all the work, an hour of it where ncu counts a full set of many kernels.
void require_outputs(const ProfileCommandOptions& options) {
  for (const std::string& output : {options.output, options.ncu_report}) {
    if (!output.empty()) require_replaceable(output);
  }
  if (options.output.empty() || options.ncu_report.empty()) return;
  if (fs::absolute(options.output).lexically_normal() ==
      fs::absolute(options.ncu_report).lexically_normal()) {
    throw Error(Fault::usage, cat("--output and --ncu-rep both name ", options.output,
                                  ": each needs a file of its own"));
  }
}

int profile_command(const ProfileCommandOptions& options) {
  require_input(options.bundle);
  require_outputs(options);
  fs::path submission = options.submission;
  if (submission.empty() && options.bundle.empty() && fs::exists("submission.py")) {
    submission = "submission.py";
  }
  const auto [whole, driver] = choose(options, submission);
  NcuRun run;
  run.ncu = ncu_for(driver);  // before anything is captured in vain
  run.set = options.set;
  run.report = options.ncu_report;
  const DeviceIdentity device = identify(driver, options.device);
  const Challenge challenge = for_arch(whole, device.arch);
  const Shape& shape = find_shape(challenge, options.shape, options.bundle);
  if (submission.empty()) submission = challenge.folder / "submission.py";

  ProgressLine line;
  const auto say = [&](const std::string& step) {
    check_interrupt();
    line.show({step, shape.name, 0});
  };
  const DeviceLock lock =
      lock_device(device, options.device, [&](const Progress& now) { say(now.step); });
  const TempDir folder;
  fs::path bundle = options.bundle;
  if (bundle.empty()) {
    say("capturing");
    bundle = folder.path() / "bundle.kjb";
    CaptureOptions capture_options;
    capture_options.submission = submission;
    capture_options.bundle = bundle;
    capture_options.only.shape = shape.name;
    capture_options.device = options.device;
    const CaptureOutcome outcome = capture(driver, challenge, capture_options);
    line.wipe();
    std::cerr << indented(printable(outcome.log), "  ") << std::flush;
    if (outcome.verdict != Verdict::accepted) {
      std::cerr << name(outcome.verdict) << ": " << hanging(outcome.message) << "\n";
      return exit_not_accepted;
    }
  }
  const Profile profile =
      profile_shape({driver, options.device, challenge, shape.name, bundle,
                     options.bundle.empty() ? submission.string() : options.bundle},
                    run, [&] { say("profiling"); });
  line.wipe();
  const std::string json = profile_to_json(profile);
  if (!options.output.empty()) write_file_atomically(options.output, json);
  std::cout << (options.json ? json : profile_table(profile));
  return exit_done;
}

struct ReplayOnceOptions : DeviceOptions {
  std::string bundle, shape;
};

}  // namespace

void add_profile(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ProfileCommandOptions>(
      app, "profile", "Show what ncu counts in a submission's kernels on a GPU", command);
  command
      ->add_option("submission", options->submission,
                   "A Python file, or a folder with submission.py; else ./submission.py, else the "
                   "challenge's own")
      ->type_name("FILE|FOLDER");
  command->add_option("--bundle", options->bundle, "A bundle of it, instead of a capture")
      ->type_name("FILE");
  add_device_options(*command, *options);
  command
      ->add_option("--shape", options->shape,
                   "This shape; else the challenge's first that this device runs, and the bundle "
                   "has")
      ->type_name("NAME");
  command->add_option("--set", options->set, "What ncu counts")
      ->check(CLI::IsMember({"basic", "full"}));
  command->add_option("-o,--output", options->output, "Write the profile there as JSON")
      ->type_name("FILE");
  command->add_option("--ncu-rep", options->ncu_report, "Keep ncu's own report there, for ncu-ui")
      ->type_name("FILE");
  command->callback([=, &status] { status = profile_command(*options); });
}

// Started by ncu only, so not in the help.
void add_replay_once(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ReplayOnceOptions>(app, "replay-once", "", command);
  command->group("");
  command->add_option("--bundle", options->bundle, "")->required()->check(CLI::ExistingFile);
  command->add_option("--shape", options->shape, "")->required();
  add_device_options(*command, *options);
  command->callback([=, &status] {
    const auto [whole, driver] = choose(*options, "");
    const DeviceIdentity device = identify(driver, options->device);
    const BundleReader bundle(options->bundle);
    check_recorded_here(bundle.bundle().provenance, device);
    replay_once(driver, for_arch(whole, device.arch), bundle, options->shape, options->device);
    status = exit_done;
  });
}

}  // namespace kjudge
