// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace kjudge {

// What an option or argument takes, from its CLI11 type and validators: one description for --help,
// the manual pages and the completions.
struct OptionValue {
  enum class Kind { none, words, file, folder, path, text };
  Kind kind = Kind::none;
  std::string placeholder;         // "FILE", "auto|cuda|host"; empty for a flag
  std::vector<std::string> words;  // of Kind::words; the placeholder may have others beside them
  std::string absent;              // the value it has where it is not given
};
OptionValue value_of(const CLI::Option& option);

// What --help shows of a command, in its order: options, or arguments.
std::vector<const CLI::Option*> options_of(const CLI::App& command);
std::vector<const CLI::Option*> arguments_of(const CLI::App& command);
// Those that --help shows. The commands of a command are not looked for: there are none.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

// Decimal, from `low` to `high`.
CLI::Validator integer_in(long low, long high);

// --help, in the same words.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace kjudge
