// SPDX-License-Identifier: Apache-2.0
#include "manual_page.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include "archive.h"
#include "challenge/challenge.h"
#include "error.h"
#include "option_value.h"

namespace kjudge {
namespace {

constexpr std::size_t kLineWidth = 78;

// A word of plain text, so that mdoc takes nothing in it for its own.
std::string escaped(std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '\\') {
      out += "\\e";
    } else if (c == '"') {
      out += "\\(dq";
    } else if (c == '-' && (i == 0 || word[i - 1] == '-' ||
                            !std::isalpha(static_cast<unsigned char>(word[i - 1])))) {
      out += "\\-";  // an option's, not a hyphen
    } else {
      out += c;
    }
  }
  return out;
}

// A description of the tables as sentences on lines of their own.
std::string sentences(std::string text) {
  if (text.empty()) return text;
  const std::string first = text.substr(0, text.find_first_of(" ,;"));
  if (std::all_of(first.begin(), first.end(), [](unsigned char c) { return std::islower(c); })) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  if (!text.ends_with('.')) text += '.';
  std::string out, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string next = escaped(word);
    if (!line.empty() && line.size() + 1 + next.size() > kLineWidth) {
      out += line + "\n";
      line.clear();
    }
    if (line.empty() && (next[0] == '.' || next[0] == '\'')) next = "\\&" + next;
    line += (line.empty() ? "" : " ") + next;
    if (word.ends_with('.')) {
      out += line + "\n";
      line.clear();
    }
  }
  return line.empty() ? out : out + line + "\n";
}

// As an argument of a macro.
std::string argument(const std::string& text) {
  if (text.find(' ') != text.npos) return cat("\"", escaped(text), "\"");
  const bool mark = std::ispunct(static_cast<unsigned char>(text[0])) != 0;
  return (mark ? "\\&" : "") + escaped(text);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string value_macro(const OptionValue& value) {
  if (value.kind == OptionValue::Kind::none) return "";
  if (value.words.empty()) return cat(" Ar ", lower(escaped(value.placeholder)));
  std::string macro;
  for (const std::string& word : value.words) macro += (macro.empty() ? " Cm " : " | ") + word;
  // What else it takes comes after the words.
  const std::size_t last = value.placeholder.rfind('|');
  const std::string rest = last == std::string::npos ? "" : value.placeholder.substr(last + 1);
  return rest.empty() || rest == value.words.back() ? macro
                                                    : cat(macro, " | Ar ", lower(escaped(rest)));
}

std::string option_macro(const CLI::Option& option, bool all_names) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(escaped(name));
  for (const std::string& name : option.get_lnames()) names.push_back("\\-" + escaped(name));
  if (!all_names) names.resize(1);
  std::string text = "Fl ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : " , ") + names[i];
  return text + value_macro(value_of(option)) + (option.get_items_expected_max() > 1 ? " ..." : "");
}

std::string argument_macro(const CLI::Option& option) {
  return cat("Ar ", option.get_name(), option.get_items_expected_max() > 1 ? " ..." : "");
}

class Page {
 public:
  Page(const std::string& file, const CLI::App& app, const CLI::App& command,
       const std::vector<JsonFormat>& formats)
      : file_(file), app_(app), command_(command), formats_(formats) {}

  std::string expand(std::string_view source) {
    std::istringstream lines{std::string(source)};
    std::string* into = &page_;
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (!line.starts_with('@')) {
        *into += line + "\n";
        continue;
      }
      std::istringstream words(line);
      std::string directive, name, path;
      words >> directive >> name >> path;
      if (directive == "@about") {
        into = &abouts_[name];
        continue;
      }
      into = &page_;
      list(directive, name, path);
      if (!abouts_.empty()) fail(cat("the list has no \"", abouts_.begin()->first, "\""));
    }
    if (!abouts_.empty()) fail("no list comes after this @about");
    check_all_shown();
    return page_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Fault::malformed, cat(file_, ":", line_, ": ", what));
  }

  void list(const std::string& directive, const std::string& name, const std::string& path) {
    if (directive == "@name") return synopsis();
    if (directive == "@options") return options();
    if (directive == "@commands") return commands();
    if (directive == "@environment") return environment();
    if (directive == "@fields") return fields(name, path);
    if (directive == "@submission-limits") return submission_limits();
    if (directive == "@challenge-limits") return challenge_limits();
    fail(cat("unknown ", directive));
  }

  std::string take_about(const std::string& name) {
    const auto node = abouts_.extract(name);
    return node.empty() ? "" : node.mapped();
  }

  void synopsis() {
    std::string about = escaped(command_.get_description());
    about[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(about[0])));
    page_ += cat(".Sh NAME\n.Nm kjudge-", command_.get_name(), "\n.Nd ", about,
                 "\n.Sh SYNOPSIS\n.Nm kjudge\n.Cm ", command_.get_name(), "\n");
    for (const CLI::Option* option : options_of(command_)) {
      if (option == command_.get_help_ptr()) continue;
      page_ += cat(option->get_required() ? "." : ".Op ", option_macro(*option, false), "\n");
    }
    for (const CLI::Option* one : arguments_of(command_)) {
      page_ += cat(one->get_required() ? "." : ".Op ", argument_macro(*one), "\n");
    }
  }

  void options() {
    for (const CLI::Option* one : arguments_of(command_)) {
      page_ += cat(".It ", argument_macro(*one), "\n", sentences(one->get_description()),
                   take_about(one->get_name()));
      variable(*one);
    }
    for (const CLI::Option* option : options_of(command_)) {
      page_ += cat(".It ", option_macro(*option, true), "\n", sentences(option->get_description()),
                   take_about(option->get_lnames().empty() ? "" : "--" + option->get_lnames()[0]));
      if (option->get_required()) page_ += "Required.\n";
      if (const OptionValue value = value_of(*option); !value.absent.empty()) {
        page_ += cat("Default:\n.Cm ", argument(value.absent), " .\n");
      }
      variable(*option);
    }
  }

  void variable(const CLI::Option& option) {
    if (!option.get_envname().empty())
      page_ += cat("Variable:\n.Ev ", option.get_envname(), " .\n");
  }

  void commands() {
    for (const CLI::App* command : commands_of(app_)) {
      page_ += cat(".It Xr kjudge-", command->get_name(), " 1\n",
                   sentences(command->get_description()), take_about(command->get_name()));
    }
  }

  void environment() {
    std::map<std::string, std::string> variables;  // the option that each sets
    const auto add = [&](const CLI::App& command) {
      for (const CLI::Option* option : command.get_options()) {
        if (option->get_group().empty() || option->get_envname().empty()) continue;
        variables.emplace(option->get_envname(),
                          option->get_positional()
                              ? cat("The argument\n.Ar ", option->get_name(), " ,")
                              : cat("The option\n.Fl \\-", option->get_lnames().at(0), " ,"));
      }
    };
    const bool whole = &command_ == &app_;
    if (!whole) add(command_);
    for (const CLI::App* command : commands_of(app_)) {
      if (whole) add(*command);
    }
    for (const auto& [variable, option] : variables) {
      page_ += cat(".It Ev ", variable, "\n", option, "\nwhere that is not given.\n",
                   take_about(variable));
    }
  }

  // Of unpack_archive and NameRules.
  void submission_limits() {
    const ArchiveLimits limits;
    const auto item = [&](const std::string& what, const std::string& most) {
      page_ += cat(".It ", what, "\n", sentences(most), take_about(what));
    };
    item("number", cat("at most ", limits.names.count, " files and folders"));
    item("depth", cat("at most ", limits.names.depth, " folders above a file"));
    item("names", cat("at most ", limits.names.name_bytes, " bytes each, and ",
                      limits.names.path_bytes, " of a file's with those of the folders above it"));
    item("ratio", cat("once ", limits.free_of_ratio, " bytes are unpacked, at most ", limits.ratio,
                      " times the bytes of the archive"));
    item("omitted", cat("of an archive at most ", limits.left_out_count, " names, and ",
                        limits.left_out_bytes, " bytes of a tar"));
  }

  // Of read_challenge.
  void challenge_limits() {
    page_ += sentences(cat("challenge.json has at most ", kMostManifestBytes >> 20,
                           " MiB, any other file ", kMostFileBytes >> 20));
  }

  static std::string key_of(const std::vector<FieldNote>& fields) {
    std::string key;
    for (const FieldNote& field : fields) key += field.name + "\n" + field.doc + "\n";
    return key;
  }

  void fields(const std::string& name, const std::string& path) {
    const auto format =
        std::find_if(formats_.begin(), formats_.end(),
                     [&](const JsonFormat& candidate) { return candidate.name == name; });
    if (format == formats_.end()) fail(cat("there is no format ", name));
    const std::vector<FieldNote>* here = &format->fields;
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, '.');) {
      const auto field = std::find_if(here->begin(), here->end(), [&](const FieldNote& candidate) {
        return candidate.name == part;
      });
      if (field == here->end() || field->fields.empty()) {
        fail(cat(name, " has no table at ", path));
      }
      here = &field->fields;
    }
    shown_.insert(key_of(*here));
    formats_shown_.insert(&*format);
    for (const FieldNote& field : *here) {
      page_ += cat(".It Cm ", field.name, "\n");
      if (!field.only_of.empty()) page_ += only_of(field, here->front().name);
      if (!field.expected.empty()) page_ += sentences(field.expected + absence(field));
      page_ += sentences(field.doc) + take_about(field.name);
    }
  }

  static std::string only_of(const FieldNote& field, const std::string& tag) {
    std::string text = cat("Where\n.Cm ", tag, "\nis\n");
    for (std::size_t i = 0; i < field.only_of.size(); ++i) {
      if (i > 0) text += "or\n";
      text += cat(".Qq ", field.only_of[i], i + 1 == field.only_of.size() ? " :\n" : "\n");
    }
    return text;
  }

  static std::string absence(const FieldNote& field) {
    if (field.required || field.doc.find("absent") != std::string::npos) return "";
    if (!field.absent || std::holds_alternative<Json::Object>(field.absent->value)) {
      return "; optional";
    }
    std::string value = print_flat_json(*field.absent);
    if (value == "[]") value = "none";
    if (value.ends_with(".0")) value.resize(value.size() - 2);
    return "; default " + value;
  }

  // A page that describes a format describes all of it.
  void check_all_shown() const {
    const auto check = [&](const auto& self, const std::vector<FieldNote>& fields,
                           const std::string& path) -> void {
      if (fields.empty()) return;
      if (!shown_.contains(key_of(fields))) fail(cat("no @fields shows the table at ", path));
      for (const FieldNote& field : fields) self(self, field.fields, path + "." + field.name);
    };
    for (const JsonFormat* format : formats_shown_) check(check, format->fields, format->name);
  }

  const std::string& file_;
  const CLI::App& app_;
  const CLI::App& command_;
  const std::vector<JsonFormat>& formats_;
  std::size_t line_ = 0;
  std::string page_;
  std::map<std::string, std::string> abouts_;  // of the next list
  std::set<std::string> shown_;
  std::set<const JsonFormat*> formats_shown_;
};

}  // namespace

std::string manual_page(std::string_view source, const std::string& file, const CLI::App& app,
                        const CLI::App& command, const std::vector<JsonFormat>& formats) {
  return Page(file, app, command, formats).expand(source);
}

}  // namespace kjudge
