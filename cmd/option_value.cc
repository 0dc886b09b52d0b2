// SPDX-License-Identifier: Apache-2.0
#include "option_value.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "error.h"

namespace kjudge {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

class Help : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const OptionValue value = value_of(*option);
    std::string text = value.placeholder.empty() ? "" : " " + value.placeholder;
    if (!option->get_positional() && option->get_items_expected_max() > 1) text += " ...";
    return text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::vector<std::string> notes;
    if (option->get_required() && !option->get_positional()) notes.emplace_back("required");
    const OptionValue value = value_of(*option);
    if (!value.absent.empty()) notes.push_back("default " + value.absent);
    if (!option->get_envname().empty()) notes.push_back(option->get_envname());
    std::string text = option->get_description();
    for (std::size_t i = 0; i < notes.size(); ++i) text += (i == 0 ? " [" : ", ") + notes[i];
    return notes.empty() ? text : text + "]";
  }
};

std::vector<const CLI::Option*> shown(const CLI::App& command, bool positional) {
  return command.get_options([&](const CLI::Option* option) {
    return !option->get_group().empty() && option->get_positional() == positional;
  });
}

}  // namespace

OptionValue value_of(const CLI::Option& option) {
  using Kind = OptionValue::Kind;
  OptionValue value;
  if (option.get_type_size() == 0 || option.get_expected_max() == 0) return value;
  // "TEXT:{auto,cuda,host}", "TEXT:FILE", "INT:INT in [1 - 3000]"
  std::vector<std::string> parts = split(option.get_type_name(), ':');
  KJ_CHECK(!parts.empty());
  value.kind = Kind::text;
  value.placeholder = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.starts_with('{')) {
      value.kind = Kind::words;
      value.words = split(part.substr(1, part.size() - 2), ',');
      value.placeholder.clear();
      for (const std::string& word : value.words) {
        value.placeholder += (value.placeholder.empty() ? "" : "|") + word;
      }
    } else if (value.placeholder == "TEXT" && part == "FILE") {
      value.placeholder = "FILE";
    } else if (value.placeholder == "TEXT" && part == "DIR") {
      value.placeholder = "FOLDER";
    } else if (value.placeholder == "TEXT" && part.starts_with("PATH")) {
      value.placeholder = "PATH";
    }
  }
  if (value.placeholder == "INT" || value.placeholder == "UINT") value.placeholder = "N";
  if (value.kind == Kind::text) {
    const auto takes = [&](std::string_view what) {
      return value.placeholder.find(what) != std::string::npos;
    };
    if (takes("PATH") || (takes("FILE") && takes("FOLDER"))) {
      value.kind = Kind::path;
    } else if (takes("FILE")) {
      value.kind = Kind::file;
    } else if (takes("FOLDER")) {
      value.kind = Kind::folder;
    }
  }
  if (value.kind == Kind::text) {  // "all|best|DAYS" takes words among others
    for (const std::string& part : split(value.placeholder, '|')) {
      const bool word =
          std::all_of(part.begin(), part.end(), [](char c) { return c >= 'a' && c <= 'z'; });
      if (word) value.words.push_back(part);
    }
    if (!value.words.empty()) value.kind = Kind::words;
  }
  value.absent = option.get_default_str();
  if (value.absent == "[]") value.absent.clear();
  return value;
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return shown(command, false);
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& command) {
  return shown(command, true);
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  const auto commands =
      app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
  for (const CLI::App* command : commands) KJ_CHECK(command->get_subcommands({}).empty());
  return commands;
}

CLI::Validator integer_in(long low, long high) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        long value = 0;
        const char* const end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        // CLI11 takes a number with a zero before it for an octal one.
        const bool octal = text.size() > 1 && text[text[0] == '-' ? 1 : 0] == '0';
        if (error == std::errc() && stopped == end && !octal && value >= low && value <= high) {
          return "";
        }
        return cat("expected an integer from ", low, " to ", high, ", found ", text);
      },
      "");
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  auto help = std::make_shared<Help>();
  help->column_width(40);
  return help;
}

}  // namespace kjudge
