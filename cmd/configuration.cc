// SPDX-License-Identifier: Apache-2.0
#include "configuration.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "configuration_text.h"
#include "error.h"
#include "file.h"
#include "option_value.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNothing = "/dev/null";  // for who wants no configuration
constexpr std::size_t kMostBytes = 1 << 20;

// The file, unless it is not there. CLI11 takes whatever is no file for one that is not there.
std::string readable(const std::string& path, const std::string& named_by) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw Error(Fault::usage, cat(named_by, path, ": a folder, not a configuration file"));
  }
  const bool pipe = is_given(path) && fs::is_fifo(path, error);
  if (fs::exists(path, error) && !fs::is_regular_file(path, error) && !pipe && path != kNothing) {
    throw Error(Fault::usage, cat(named_by, path, ": not a regular file"));
  }
  if (::access(path.c_str(), R_OK) != 0 && errno != ENOENT && errno != ENOTDIR) {
    throw Error(Fault::usage, cat(named_by, path, ": ", std::strerror(errno)));
  }
  return path;
}

bool set_by_environment(const CLI::Option& option) {
  const char* value =
      option.get_envname().empty() ? nullptr : std::getenv(option.get_envname().c_str());
  return value != nullptr && *value != '\0';  // an empty one sets nothing
}

// What is wrong with the values of an item; empty: nothing.
std::string mistake(CLI::Option& option, const std::vector<std::string>& values) {
  if (option.get_expected_min() == 0) {  // a flag
    const std::string value = values.size() == 1 ? values[0] : "";
    if (value == "true" || value == "false") return "";
    return values.size() == 1 ? cat("expected true or false, found ", value)
                              : cat("expected true or false, found ", values.size(), " values");
  }
  if (values.size() > static_cast<std::size_t>(option.get_items_expected_max())) {
    return cat("expected one value, found ", values.size());
  }
  for (std::string value : values) {
    for (int i = 0;; ++i) {
      const CLI::Validator* validator = nullptr;
      try {
        validator = option.get_validator(i);
      } catch (const CLI::OptionNotFound&) {
        break;  // how CLI11 says that there are no more
      }
      if (std::string wrong = (*validator)(value); !wrong.empty()) return wrong;
    }
  }
  return "";
}

class ConfigurationReader : public CLI::ConfigTOML {
 public:
  explicit ConfigurationReader(CLI::App& app) : app_(app) {}

  // Not CLI11's own parser, which knows of no lines, passes over short ones and cuts strings at
  // "#".
  // Nor its stream, which knows no limit.
  std::vector<CLI::ConfigItem> from_config(std::istream&) const override {
    const std::string file = app_.get_config_ptr()->as<std::string>();
    const std::string text = text_of(file);
    std::vector<CLI::ConfigItem> kept;
    try {
      for (const ConfigurationLine& line : read_configuration(text)) take(line, kept);
    } catch (Error& error) {
      error.context(file);
      throw;
    }
    return kept;
  }

 private:
  static std::string text_of(const std::string& file) {
    if (file == kNothing) return "";
    try {
      return read_file(file, kMostBytes);
    } catch (const Error& error) {  // whoever named it can mend it
      throw Error(Fault::usage, error.what());
    }
  }

  [[noreturn]] static void refuse(const ConfigurationLine& line, const std::string& what) {
    throw Error(Fault::usage, cat("line ", line.line, ": ", what));
  }

  void take(const ConfigurationLine& line, std::vector<CLI::ConfigItem>& kept) const {
    CLI::App& command = command_of(line);
    if (line.name.empty()) return;  // a section begins
    CLI::Option* option = option_of(command, line);
    if (set_by_environment(*option)) return;
    if (const std::string wrong = mistake(*option, line.values); !wrong.empty()) {
      refuse(line, cat("[", command.get_name(), "] ", line.name, ": ", wrong));
    }
    CLI::ConfigItem& item = kept.emplace_back();
    item.parents = {line.section};
    item.name = line.name;
    item.inputs = line.values;
  }

  CLI::App& command_of(const ConfigurationLine& line) const {
    if (line.section.empty()) {
      refuse(line,
             cat(line.name, ": expected [COMMAND] before, as in [selftest] driver = \"host\""));
    }
    std::string names;
    for (const CLI::App* command : commands_of(app_)) {
      if (line.section == command->get_name()) return *app_.get_subcommand(line.section);
      names += cat(names.empty() ? "" : ", ", command->get_name());
    }
    refuse(line, cat("[", line.section, "]: no such command; there are ", names));
  }

  CLI::Option* option_of(CLI::App& command, const ConfigurationLine& line) const {
    std::string names;
    for (const CLI::Option* option : options_of(command)) {
      if (option == command.get_help_ptr()) continue;
      if (option->get_lnames()[0] == line.name) {
        return command.get_option_no_throw("--" + line.name);
      }
      names += cat(names.empty() ? "" : ", ", option->get_lnames()[0]);
    }
    for (const CLI::Option* argument : arguments_of(command)) {
      if (argument->get_name() == line.name) return command.get_option_no_throw(line.name);
      names += cat(names.empty() ? "" : ", ", argument->get_name());
    }
    refuse(line, cat("[", line.section, "] ", line.name, ": no such option; there are ", names));
  }

  CLI::App& app_;
};

}  // namespace

std::string configuration_file() {
  if (const char* named = std::getenv("KJUDGE_CONFIG"); named != nullptr && *named != '\0') {
    if (!fs::exists(named)) {
      throw Error(Fault::usage, cat("KJUDGE_CONFIG=", named, ": no such file"));
    }
    return readable(named, "KJUDGE_CONFIG=");
  }
  const char* given = std::getenv("XDG_CONFIG_HOME");
  if (given != nullptr && *given == '/') return readable(cat(given, "/kjudge/config.toml"), "");
  const char* home = std::getenv("HOME");
  return home != nullptr ? readable(cat(home, "/.config/kjudge/config.toml"), "") : "";
}

CLI::Validator configuration_file_check() {
  return {[](std::string& path) {
            readable(path, "--config ");
            return std::string();
          },
          ""};
}

std::shared_ptr<CLI::Config> configuration_reader(CLI::App& app) {
  return std::make_shared<ConfigurationReader>(app);
}

}  // namespace kjudge
