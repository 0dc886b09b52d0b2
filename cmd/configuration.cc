// SPDX-License-Identifier: Apache-2.0
#include "configuration.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "error.h"
#include "judge/report.h"
#include "option_value.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// The file, unless it is not there. CLI11 takes whatever is no file for one that is not there.
std::string readable(const std::string& path, const std::string& named_by) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw Error(Fault::usage, cat(named_by, path, ": a folder, not a configuration file"));
  }
  if (fs::exists(path, error) && !fs::is_regular_file(path, error) && path != "/dev/null") {
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

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    auto kept = CLI::ConfigTOML::from_config(input);
    std::erase_if(kept, [&](const CLI::ConfigItem& item) {
      CLI::App& command = command_of(item);
      if (item.name == "++" || item.name == "--") return false;  // a section begins, ends
      CLI::Option* option = option_of(command, item);
      if (set_by_environment(*option)) return true;
      if (const std::string wrong = mistake(*option, item.inputs); !wrong.empty()) {
        refuse(cat("[", command.get_name(), "] ", item.name, ": ", wrong));
      }
      return false;
    });
    return kept;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Fault::usage, cat(app_.get_config_ptr()->as<std::string>(), ": ", printable(what)));
  }

  CLI::App& command_of(const CLI::ConfigItem& item) const {
    if (item.parents.empty()) {
      refuse(cat(item.name, ": expected [COMMAND] before, as in [selftest] driver = \"host\""));
    }
    std::string names;
    for (const CLI::App* command : commands_of(app_)) {
      if (item.parents == std::vector<std::string>{command->get_name()}) {
        return *app_.get_subcommand(command->get_name());
      }
      names += cat(names.empty() ? "" : ", ", command->get_name());
    }
    refuse(cat("[", CLI::detail::join(item.parents, "."), "]: no such command; there are ", names));
  }

  CLI::Option* option_of(CLI::App& command, const CLI::ConfigItem& item) const {
    std::string names;
    for (const CLI::Option* option : options_of(command)) {
      if (option == command.get_help_ptr()) continue;
      if (option->get_lnames()[0] == item.name) {
        return command.get_option_no_throw("--" + item.name);
      }
      names += cat(names.empty() ? "" : ", ", option->get_lnames()[0]);
    }
    for (const CLI::Option* argument : arguments_of(command)) {
      if (argument->get_name() == item.name) return command.get_option_no_throw(item.name);
      names += cat(names.empty() ? "" : ", ", argument->get_name());
    }
    refuse(cat("[", command.get_name(), "] ", item.name, ": no such option; there are ", names));
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

std::shared_ptr<CLI::Config> configuration_reader(CLI::App& app) {
  return std::make_shared<ConfigurationReader>(app);
}

}  // namespace kjudge
