// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>

#include "configuration.h"
#include "error.h"
#include "failure.h"
#include "file.h"
#include "judge/device.h"
#include "judge/report.h"
#include "judge/version.h"
#include "option_value.h"

namespace kjudge {
namespace {

std::string driver_found() {
  for (DriverKind kind : {DriverKind::cuda, DriverKind::host}) {
    if (kind == DriverKind::cuda && !cuda_available()) continue;
    try {
      const DeviceIdentity device = identify(Driver::open(kind), 0);
      return cat(device.driver, " on ", device.name);
    } catch (const Error&) {
      continue;
    }
  }
  return "none";
}

}  // namespace

void set_up(CLI::App& app) {
  app.require_subcommand(1);
  app.set_version_flag("--version", [] {
    return cat("kjudge ", kVersion, ", method ", kMethod, ", commit ", kCommit, ", driver ",
               driver_found());
  });
  std::string file;
  std::exception_ptr unusable;
  try {
    file = configuration_file();
  } catch (const Error&) {
    unusable = std::current_exception();
  }
  // Only when a command is about to run: --help and --version answer without the file.
  app.parse_complete_callback([unusable] {
    if (unusable != nullptr) std::rethrow_exception(unusable);
  });
  app.set_config(
      "--config", file,
      "Defaults, as [selftest] driver = \"host\"; options and KJUDGE_* go before; KJUDGE_CONFIG "
      "names another file");
  app.get_config_ptr()->type_name("FILE")->check(configuration_file_check());
  app.config_formatter(configuration_reader(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.formatter(help_formatter());
  app.option_defaults()->always_capture_default();
  app.failure_message([](const CLI::App* program, const CLI::Error& error) {
    return cat("kjudge: usage: ", usage_text(*program, error),
               "; 'kjudge --help' and 'kjudge COMMAND --help' say what there is\n");
  });
  app.footer(
      "For a contestant: kjudge selftest. For an organizer: kjudge judge RESULTS --from FOLDER, "
      "then "
      "kjudge rank RESULTS.\n"
      "Exit codes: 0 done or accepted, 1 judged and not accepted, 2 usage, 3 malformed file, 4 "
      "authentication, 5 judge "
      "error, 6 I/O, 75 try later; 129, 130 or 143 interrupted by SIGHUP, "
      "SIGINT or SIGTERM.");
}

void refuse_empty_values(CLI::App& app) {
  const CLI::Validator not_empty([](std::string& value) { return value.empty() ? "is empty" : ""; },
                                 "");
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_expected_max() > 0) option->check(not_empty);
    }
  }
}

void add_results_option(CLI::App& command, std::string& results, const std::string& doc) {
  command.add_option("results", results, doc)
      ->type_name("FOLDER")
      ->required()
      ->envname("KJUDGE_RESULTS");
}

CLI::Validator finite_number() {
  return {[](std::string& text) {
            return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : "expected a number";
          },
          ""};
}

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command
      .add_option("--challenge", options.challenge,
                  "Folder with challenge.json, or the name of a package; else the one beside or "
                  "above the submission, else the only package that this program has")
      ->type_name("FOLDER|NAME")
      ->envname("KJUDGE_CHALLENGE");
  add_driver_options(command, options);
}

void add_driver_options(CLI::App& command, DeviceOptions& options) {
  command
      .add_option("--driver", options.driver,
                  "Behind the CUDA driver API: NVIDIA's, or kjudge's own for processor cores; auto "
                  "follows the challenge and this machine")
      ->envname("KJUDGE_DRIVER")
      ->check(CLI::IsMember({"auto", "cuda", "host"}));
  command.add_option("--device", options.device, "Number of the device, from 0")
      ->envname("KJUDGE_DEVICE")
      ->check(integer_in(0, 1023));
}

void add_only_options(CLI::App& command, VariantRequest& only) {
  command.add_option("--dtype", only.dtype, "Only shapes and tests of this dtype")
      ->type_name("NAME");
  command.add_option("--shape", only.shape, "Only this shape")->type_name("NAME");
}

Challenge choose_challenge(const std::string& name, const std::filesystem::path& submission) {
  Challenge challenge = read_challenge(find_challenge(name, submission));
  if (name.empty()) {
    const std::filesystem::path folder = std::filesystem::absolute(challenge.folder);
    const auto inside = folder.lexically_relative(std::filesystem::current_path());
    const bool below = !inside.empty() && *inside.begin() != "..";
    say(cat("taking ", challenge.name, ", version ", challenge.version, ", in ",
            (below ? inside : folder).string()));
  }
  return challenge;
}

ChosenDevice choose(const DeviceOptions& options, const std::filesystem::path& submission) {
  Challenge challenge = choose_challenge(options.challenge, submission);
  const Driver& driver = open_driver(options.driver, challenge);
  return {std::move(challenge), driver};
}

std::function<const Sandbox*()> sandbox_when_needed(const Sandbox::Wanted& wanted) {
  return [wanted, made = std::make_shared<std::optional<Sandbox>>()]() -> const Sandbox* {
    if (!*made) made->emplace(wanted);
    return &**made;
  };
}

void set_pairs(ReplayOptions& replay, int pairs) {
  replay.rounds = std::clamp(pairs / kPairsPerRound, 1, kRounds);
  replay.pairs_per_round = pairs / replay.rounds;
  constexpr int kAll = kRounds * kPairsPerRound;
  if (pairs > kPairsPerRound && pairs % (pairs < kAll ? kPairsPerRound : kAll) != 0) {
    throw Error(Fault::usage,
                cat("--pairs ", pairs, ": expected 1 to 5, or a multiple of 5 up to 30, or of 30"));
  }
}

void require_input(const std::string& path) {
  if (path.empty()) return;  // the option was not given
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) throw_errno(path);
}

void say(const std::string& line) { std::cerr << "kjudge: " << message_text(line) << "\n"; }

int status_of(const Evaluation& evaluation) {
  if (evaluation.verdict == Verdict::accepted) return exit_done;
  return evaluation.verdict == Verdict::judge_error ? exit_judge_error : exit_not_accepted;
}

}  // namespace kjudge
