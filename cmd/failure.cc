// SPDX-License-Identifier: Apache-2.0
#include "failure.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "error.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "option_value.h"

namespace kjudge {

int exit_code(Fault fault) {
  switch (fault) {
    case Fault::usage:
      return exit_usage;
    case Fault::package:
    case Fault::malformed:
      return exit_malformed;
    case Fault::submission:
      return exit_not_accepted;
    case Fault::host:
      return exit_io;
    case Fault::device:
    case Fault::bug:
      break;
  }
  return exit_judge_error;
}

namespace {

// How many letters to change, add, take away or exchange with the next make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> to(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        to[i][j] = i + j;
        continue;
      }
      to[i][j] = std::min(
          {to[i - 1][j] + 1, to[i][j - 1] + 1, to[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        to[i][j] = std::min(to[i][j], to[i - 2][j - 2] + 1);
      }
    }
  }
  return to[a.size()][b.size()];
}

std::string unknown_command(const CLI::App& app, const std::string& given) {
  std::string names, nearest;
  std::size_t least = 3;  // further off it is not what was meant
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    names += cat(names.empty() ? "" : ", ", name);
    const std::size_t here = name.starts_with(given) ? 1 : distance(given.substr(0, 40), name);
    if (here < least && here < name.size()) {
      least = here;
      nearest = name;
    }
  }
  return nearest.empty() ? cat(given, ": no such command; there are ", names)
                         : cat(given, ": no such command, perhaps ", nearest);
}

// Where the value is that of a variable, its name and value, else nothing.
std::string variable_of(const CLI::App& app, const std::string& option_name) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_name() != option_name || option->get_envname().empty()) continue;
      const char* value = std::getenv(option->get_envname().c_str());
      if (value != nullptr && option->results() == std::vector<std::string>{value}) {
        return cat(option->get_envname(), "=", value);
      }
    }
  }
  return "";
}

}  // namespace

std::string usage_text(const CLI::App& app, const CLI::Error& error) {
  std::string text = error.what();
  const std::vector<std::string> left = app.remaining();
  if (app.get_subcommands().empty() && !left.empty()) {
    return message_text(left[0].starts_with('-') ? cat(left[0], ": no such option before a command")
                                                 : unknown_command(app, left[0]));
  }
  const std::size_t end = text.find(": ");
  if (end != text.npos) {
    const std::string variable = variable_of(app, text.substr(0, end));
    if (!variable.empty()) text.replace(0, end, variable);
  }
  return message_text(text);
}

namespace {

bool help_wanted(const CLI::App& app) {
  const auto wanted = [](const CLI::App* one) { return one->get_help_ptr()->count() > 0; };
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return wanted(&app) || std::any_of(commands.begin(), commands.end(), wanted);
}

}  // namespace

int report_failure(const CLI::App& app) {
  // No command has run then: a mistake in the configuration file or in a variable, which keeps
  // nobody from reading how to mend it.
  if (help_wanted(app)) {
    std::cout << app.help();
    return exit_done;
  }
  if (app.get_option("--version")->count() > 0) {
    std::cout << app.version() << "\n";
    return exit_done;
  }
  try {
    throw;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  } catch (const Interrupted& interrupted) {
    std::cerr << "kjudge: interrupted\n";
    return 128 + interrupted.signal;
  } catch (const Error& error) {
    std::cerr << "kjudge: " << message_text(described(error)) << "\n";
    if (error.fault() == Fault::bug) {
      std::cerr << "kjudge: at " << error.where().file_name() << ":" << error.where().line()
                << "; please report this\n";
    }
    return exit_code(error.fault());
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string why = error.path1().empty()
                                ? error.what()
                                : cat(error.path1().string(), ": ", error.code().message());
    std::cerr << "kjudge: host: " << message_text(why) << "\n";
    return exit_io;
  } catch (const std::exception& error) {
    std::cerr << "kjudge: bug: " << message_text(error.what()) << "; please report this\n";
    return exit_judge_error;
  }
}

}  // namespace kjudge
