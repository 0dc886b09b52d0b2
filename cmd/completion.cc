// SPDX-License-Identifier: Apache-2.0
#include "completion.h"

#include "error.h"
#include "option_value.h"

namespace kjudge {
namespace {

using Takes = OptionValue::Kind;

constexpr std::string_view kHead =
    "# SPDX-License-Identifier: Apache-2.0\n"
    "# Made from the options of kjudge when it was built.\n";

// "-o", "--output"
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

// In single quotes, for any of the three shells.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Of words and single quotes, for bash.
std::string in_double_quotes(const std::string& text) { return cat("\"", text, "\""); }

bool takes_many(const CLI::Option& argument) { return argument.get_items_expected_max() > 1; }

// What follows an option, or stands for an argument, as the function _kjudge_value is told it.
std::string bash_value(const OptionValue& value) {
  switch (value.kind) {
    case Takes::words:
      return cat("words ", in_quotes(joined(value.words, " ")));
    case Takes::file:
    case Takes::path:
      return "files";
    case Takes::folder:
      return "folders";
    case Takes::none:
    case Takes::text:
      break;
  }
  return "nothing";
}

std::string bash_case(const CLI::App& command, const std::string& label) {
  std::vector<std::string> options, valued;
  std::string values;
  for (const CLI::Option* option : options_of(command)) {
    const auto names = names_of(*option);
    options.insert(options.end(), names.begin(), names.end());
    const OptionValue value = value_of(*option);
    if (value.kind == Takes::none) continue;
    valued.insert(valued.end(), names.begin(), names.end());
    values +=
        cat("        ", joined(names, "|"), ") _kjudge_value ", bash_value(value), "; return ;;\n");
  }
  std::vector<std::string> arguments;
  std::string rest = "nothing";
  for (const CLI::Option* option : arguments_of(command)) {
    const std::string value = bash_value(value_of(*option));
    arguments.push_back(in_double_quotes(value));
    if (takes_many(*option)) rest = value;
  }
  return cat("    ", label, ")\n      case $before in\n", values,
             "      esac\n      options=", in_quotes(joined(options, " ")),
             "\n      valued=", in_quotes(joined(valued, " ")), "\n      arguments=(",
             joined(arguments, " "), ")\n      rest=", in_double_quotes(rest), " ;;\n");
}

std::string zsh_action(const OptionValue& value) {
  const std::string label = replaced(value.placeholder, ":", "\\:");
  switch (value.kind) {
    case Takes::none:
      return "";
    case Takes::words:
      return cat(":value:(", joined(value.words, " "), ")");
    case Takes::file:
    case Takes::path:
      return cat(":", label, ":_files");
    case Takes::folder:
      return cat(":", label, ":_files -/");
    case Takes::text:
      break;
  }
  return cat(":", label, ": ");
}

// The argument of _arguments for each option, then for each argument.
std::string zsh_specs(const CLI::App& command, std::string_view indent) {
  std::string out;
  for (const CLI::Option* option : options_of(command)) {
    std::string about = option->get_description();
    for (const char* special : {"[", "]", ":"}) {
      about = replaced(about, special, std::string("\\") + special);
    }
    const auto names = names_of(*option);
    for (const std::string& name : names) {
      const std::string others = cat("(", joined(names, " "), ")");
      const bool equals = name.starts_with("--") && value_of(*option).kind != Takes::none;
      out += cat(indent,
                 in_quotes(cat(others, name, equals ? "=" : "", "[", about, "]",
                               zsh_action(value_of(*option)))),
                 " \\\n");
    }
  }
  int place = 0;
  for (const CLI::Option* argument : arguments_of(command)) {
    ++place;
    out += cat(indent,
               in_quotes((takes_many(*argument) ? "*" : std::to_string(place)) +
                         zsh_action(value_of(*argument))),
               " \\\n");
  }
  return out;
}

std::string fish_option(const CLI::Option& option, const std::string& condition) {
  std::string line = cat("complete -c kjudge -n ", in_quotes(condition));
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  const OptionValue value = value_of(option);
  switch (value.kind) {
    case Takes::none:
      break;
    case Takes::words:
      line += cat(" -x -a ", in_quotes(joined(value.words, " ")));
      break;
    case Takes::file:
    case Takes::path:
      line += " -r -F";
      break;
    case Takes::folder:
      line += " -x -a '(__fish_complete_directories)'";
      break;
    case Takes::text:
      line += " -x";
      break;
  }
  return cat(line, " -d ", in_quotes(option.get_description()), "\n");
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases = bash_case(app, "''");
  for (const CLI::App* command : commands_of(app)) {
    commands.push_back(command->get_name());
    cases += bash_case(*command, command->get_name());
  }
  const std::string words = joined(commands, " ");
  return cat(kHead, R"(
# _kjudge_value nothing | files | folders | words WORDS
_kjudge_value() {
  case $1 in
    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    words) mapfile -t COMPREPLY < <(compgen -W "$2" -- "$current") ;;
  esac
}

_kjudge() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command='' options='' valued='' rest='' word place=0 skip=''
  local -a arguments=()
  COMPREPLY=()
  # Bash takes "=" for a word of its own.
  if [[ $current == = ]]; then
    current=''
  elif [[ $before == = && $COMP_CWORD -ge 2 ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      )",
             joined(commands, "|"), R"() command=$word; break ;;
    esac
  done
  case $command in
)",
             cases, R"(  esac
  # Which of the arguments it is: words after the command that are neither options nor their values.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == = ]]; then
      skip=1
    elif [[ -n $skip ]]; then
      skip=''
    elif [[ $word == -* ]]; then
      [[ " $valued " == *" $word "* ]] && skip=1
    else
      ((++place))
    fi
  done
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ -z $command ]]; then
    _kjudge_value words ')",
             words, R"('
  else
    eval "_kjudge_value ${arguments[place-1]:-$rest}"
  fi
}

complete -F _kjudge kjudge
)");
}

std::string zsh_completion(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands +=
        cat("    ", in_quotes(cat(command->get_name(), ":", command->get_description())), "\n");
    cases += cat("    ", command->get_name(), ")\n      _arguments \\\n",
                 zsh_specs(*command, "        "), "        && found=0 ;;\n");
  }
  return cat("#compdef kjudge\n", kHead, R"(
_kjudge() {
  local context state state_descr line found=1
  typeset -A opt_args
  local -a commands=(
)",
             commands, R"(  )
  _arguments -C \
)",
             zsh_specs(app, "    "), R"(    '1: :->command' \
    '*:: :->arguments' && found=0
  case $state in
    command) _describe -t commands 'command of kjudge' commands && found=0; return found ;;
    arguments) ;;
    *) return found ;;
  esac
  case $words[1] in
)",
             cases, R"(  esac
  return found
}

if [[ $funcstack[1] == _kjudge ]]; then
  _kjudge "$@"
else
  compdef _kjudge kjudge
fi
)");
}

std::string fish_completion(const CLI::App& app) {
  std::string out = cat(kHead, "complete -c kjudge -f\n");
  for (const CLI::Option* option : options_of(app)) {
    out += fish_option(*option, "__fish_use_subcommand");
  }
  for (const CLI::App* command : commands_of(app)) {
    out += cat("complete -c kjudge -n '__fish_use_subcommand' -a ", command->get_name(), " -d ",
               in_quotes(command->get_description()), "\n");
    const std::string here = "__fish_seen_subcommand_from " + command->get_name();
    for (const CLI::Option* option : options_of(*command)) out += fish_option(*option, here);
    for (const CLI::Option* argument : arguments_of(*command)) {
      const Takes kind = value_of(*argument).kind;
      if (kind == Takes::file || kind == Takes::path) {
        out += cat("complete -c kjudge -n ", in_quotes(here), " -F\n");
      } else if (kind == Takes::folder) {
        out +=
            cat("complete -c kjudge -n ", in_quotes(here), " -a '(__fish_complete_directories)'\n");
      } else if (kind == Takes::words) {
        const std::string words = joined(value_of(*argument).words, " ");
        const std::string first = cat(here, "; and not __fish_seen_subcommand_from ", words);
        out += cat("complete -c kjudge -n ", in_quotes(first), " -a ", in_quotes(words), "\n");
      }
    }
  }
  return out;
}

}  // namespace kjudge
