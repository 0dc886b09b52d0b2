// SPDX-License-Identifier: Apache-2.0
#include "configuration_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "error.h"

namespace kjudge {
namespace {

bool is_one_of(char c, std::string_view characters) {
  return characters.find(c) != characters.npos;
}

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         is_one_of(c, "_-");
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) {
      refuse("begins with a byte order mark; save it as UTF-8 without one");
    }
  }

  std::vector<ConfigurationLine> run() {
    std::vector<ConfigurationLine> lines;
    for (skip_lines(); !rest_.empty(); skip_lines()) {
      ConfigurationLine line = rest_.front() == '[' ? section() : assignment();
      end_line();
      const auto [first, is_new] = seen_.try_emplace({line.section, line.name}, line.line);
      if (!is_new) {
        line_ = line.line;
        refuse(cat(line.name.empty() ? cat("[", line.section, "]") : line.name,
                   " stands twice, first in line ", first->second));
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(Fault::usage, cat("line ", line_, ": ", what));
  }

  // "x = ..." for a message; "the end of the line" where there is no more of it.
  std::string found() const {
    const std::string_view line = rest_.substr(0, rest_.find_first_of("\r\n"));
    return line.empty() ? "the end of the line" : std::string(line);
  }

  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '\n') ++line_;
    return c;
  }
  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    take();
    return true;
  }
  void skip(std::string_view characters) {
    while (!rest_.empty() && is_one_of(rest_.front(), characters)) take();
  }
  void skip_comment() {
    if (rest_.starts_with('#')) rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
  }
  void skip_lines() {
    for (skip(" \t\r\n"); rest_.starts_with('#'); skip(" \t\r\n")) skip_comment();
  }
  void end_line() {
    skip(" \t");
    skip_comment();
    skip("\r");
    if (!rest_.empty() && !take('\n')) refuse(cat("expected the end of the line, found ", found()));
  }

  std::string name() {
    skip(" \t");
    std::string name;
    if (!rest_.empty() && is_one_of(rest_.front(), "\"'")) {
      name = quoted();
    } else {
      while (!rest_.empty() && is_bare(rest_.front())) name += take();
    }
    if (name.empty()) refuse(cat("expected a name, found ", found()));
    skip(" \t");
    return name;
  }

  ConfigurationLine section() {
    ConfigurationLine line{line_, {}, {}, {}};
    take('[');
    section_ = line.section = name();
    while (take('.')) section_ = line.section += "." + name();
    if (!take(']')) refuse(cat("expected \"]\" after [", line.section, ", found ", found()));
    return line;
  }

  ConfigurationLine assignment() {
    ConfigurationLine line{line_, section_, name(), {}};
    while (take('.')) {
      line.section += (line.section.empty() ? "" : ".") + line.name;
      line.name = name();
    }
    if (!take('=')) {
      refuse(cat("expected [COMMAND], or NAME = VALUE as in driver = \"host\", found ", line.name,
                 rest_.empty() || is_one_of(rest_.front(), "\r\n") ? "" : " " + found()));
    }
    skip(" \t");
    if (take('[')) {
      list(line.values);
    } else {
      line.values.push_back(value());
    }
    return line;
  }

  void list(std::vector<std::string>& values) {
    for (skip_lines(); !take(']'); skip_lines()) {
      values.push_back(value());
      skip_lines();
      if (!take(',') && !rest_.starts_with(']')) {
        refuse(cat("expected \",\" or \"]\" in a list, found ", found()));
      }
    }
  }

  std::string value() {
    if (!rest_.empty() && is_one_of(rest_.front(), "\"'")) return quoted();
    std::string value;
    while (!rest_.empty() && (is_bare(rest_.front()) || is_one_of(rest_.front(), "+."))) {
      value += take();
    }
    const bool number = !value.empty() && (is_one_of(value[0], "+-0123456789"));
    if (!number && value != "true" && value != "false") {
      refuse(cat("expected a string in quotes, a number, true, false or a list of them, found ",
                 value.empty() ? found() : value));
    }
    return value;
  }

  std::string quoted() {
    const char quote = take();
    std::string text;
    for (;;) {
      if (rest_.empty() || rest_.front() == '\n')
        refuse(cat("a string without its last ", std::string(1, quote)));
      const char c = take();
      if (c == quote) return text;
      text += quote == '"' && c == '\\' ? escaped() : c;
    }
  }
  char escaped() {
    static constexpr std::string_view kLetters = "\"\\nt", kMeant = "\"\\\n\t";
    const auto which = rest_.empty() ? kLetters.npos : kLetters.find(rest_.front());
    if (which == kLetters.npos) {
      refuse(
          "expected \\\", \\\\, \\n or \\t after a backslash; a string in single quotes has none");
    }
    take();
    return kMeant[which];
  }

  std::string_view rest_;
  int line_ = 1;
  std::string section_;
  std::map<std::pair<std::string, std::string>, int> seen_;
};

}  // namespace

std::vector<ConfigurationLine> read_configuration(std::string_view text) {
  return Reader(text).run();
}

}  // namespace kjudge
