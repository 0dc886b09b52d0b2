// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "commands.h"
#include "driver/driver.h"
#include "json.h"
#include "judge/pipeline.h"
#include "judge/sandbox.h"

namespace kjudge {

// Version, configuration file, help: what concerns all of the program.
void set_up(CLI::App& app);
// To be called when all commands are there: "" is no value of any option, but mostly a shell's
// variable that is not set, and would stand for the default.
void refuse_empty_values(CLI::App& app);

// CLI::Range lets NaN pass.
CLI::Validator finite_number();

// A subcommand with --json, whose values live as long as its callback.
template <class Options>
std::shared_ptr<Options> add_command(CLI::App& app, const std::string& name,
                                     const std::string& description, CLI::App*& command) {
  auto options = std::make_shared<Options>();
  command = app.add_subcommand(name, description);
  command->add_flag("--json", options->json, "Print JSON on stdout");
  return options;
}

// What selftest, capture, replay and judge have in common: a challenge on a device.
struct DeviceOptions {
  bool json = false;
  std::string challenge;
  std::string driver = "auto";
  int device = 0;
};
void add_device_options(CLI::App& command, DeviceOptions& options);
// The positional argument that most organizers' commands begin with.
void add_results_option(CLI::App& command, std::string& results,
                        const std::string& doc = "Results directory");
// Only --driver and --device.
void add_driver_options(CLI::App& command, DeviceOptions& options);

// --dtype and --shape, as the dtype and shape of a variant.
void add_only_options(CLI::App& command, VariantRequest& only);

struct ChosenDevice {
  Challenge challenge;
  const Driver& driver;
};
// The challenge that is named; where none is, the one that find_challenge finds is told.
Challenge choose_challenge(const std::string& name, const std::filesystem::path& submission);
// `submission` is where a challenge may lie beside or above; see find_challenge.
ChosenDevice choose(const DeviceOptions& options, const std::filesystem::path& submission);

// Makes one when it is first asked, so that what needs none works where there can be none.
std::function<const Sandbox*()> sandbox_when_needed(const Sandbox::Wanted& wanted);

// --pairs N as rounds of at most 5.
void set_pairs(ReplayOptions& replay, int pairs);

// Before anything else is done: Fault::host where an input that an option names cannot be opened.
void require_input(const std::string& path);

// Talk: a line on stderr.
void say(const std::string& line);

// The exit code of one evaluation.
int status_of(const Evaluation& evaluation);

}  // namespace kjudge
