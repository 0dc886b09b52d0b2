// SPDX-License-Identifier: Apache-2.0
#include <ostream>
#include <utility>

#include "json.h"
#include "json_text.h"

namespace kjudge {
namespace {

constexpr std::size_t kLineWidth = 120;

// The value on one line; stops early once longer than `room`.
void print_flat(const Json& json, std::size_t room, std::string& out) {
  struct Printer {
    std::size_t room;
    std::string& out;
    void operator()(std::nullptr_t) const { out += "null"; }
    void operator()(bool value) const { out += value ? "true" : "false"; }
    void operator()(std::int64_t value) const { out += std::to_string(value); }
    void operator()(double value) const { out += json_number(value); }
    void operator()(const std::string& value) const { out += in_quotes(value); }
    void operator()(const Json::List& list) const {
      out += '[';
      for (std::size_t i = 0; i < list.size() && out.size() <= room; ++i) {
        if (i > 0) out += ", ";
        print_flat(list[i], room, out);
      }
      out += ']';
    }
    void operator()(const Json::Object& object) const {
      out += '{';
      for (std::size_t i = 0; i < object.size() && out.size() <= room; ++i) {
        if (i > 0) out += ", ";
        out += in_quotes(object[i].name) + ": ";
        print_flat(object[i].value, room, out);
      }
      out += '}';
    }
  };
  std::visit(Printer{room, out}, json.value);
}

// `column` is where the value starts on its line.
void print_wide(const Json& json, std::size_t indent, std::size_t column, std::string& out) {
  const auto* list = std::get_if<Json::List>(&json.value);
  const auto* object = std::get_if<Json::Object>(&json.value);
  // The document itself is always spread out.
  if ((list == nullptr && object == nullptr) || column > 0) {
    const std::size_t room = column < kLineWidth ? kLineWidth - column : 0;
    std::string flat;
    print_flat(json, room, flat);
    if ((list == nullptr && object == nullptr) || flat.size() < room) {  // a comma may follow
      out += flat;
      return;
    }
  }
  const std::string inside(indent + 2, ' ');
  out += list != nullptr ? "[" : "{";
  const std::size_t size = list != nullptr ? list->size() : object->size();
  for (std::size_t i = 0; i < size; ++i) {
    out += i == 0 ? "\n" : ",\n";
    out += inside;
    if (list != nullptr) {
      print_wide((*list)[i], indent + 2, indent + 2, out);
    } else {
      const std::string name = in_quotes((*object)[i].name) + ": ";
      out += name;
      print_wide((*object)[i].value, indent + 2, indent + 2 + name.size(), out);
    }
  }
  out += cat("\n", std::string(indent, ' '), list != nullptr ? "]" : "}");
}

}  // namespace

std::string describe(const Json& json) {
  struct {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return json_number(value); }
    std::string operator()(const std::string& value) const { return shown(value); }
    std::string operator()(const Json::List&) const { return "a list"; }
    std::string operator()(const Json::Object&) const { return "an object"; }
  } text;
  return std::visit(text, json.value);
}

std::string print_json(const Json& value) {
  std::string out;
  print_wide(value, 0, 0, out);
  return out + '\n';
}

std::string print_flat_json(const Json& value) {
  std::string out;
  print_flat(value, std::string::npos, out);
  return out;
}

void JsonPrinter::open(char bracket) {
  place();
  name_columns_ = 0;
  out_ << bracket;
  open_.push_back({bracket});
}

void JsonPrinter::close() {
  KJ_CHECK(!open_.empty() && name_columns_ == 0);
  const Open closed = open_.back();
  open_.pop_back();
  if (!closed.empty) out_ << '\n' << std::string(2 * open_.size(), ' ');
  out_ << (closed.bracket == '{' ? '}' : ']');
  if (open_.empty()) out_ << '\n';
}

void JsonPrinter::name(std::string_view name) {
  KJ_CHECK(!open_.empty() && open_.back().bracket == '{' && name_columns_ == 0);
  place();
  const std::string text = in_quotes(name) + ": ";
  out_ << text;
  name_columns_ = text.size();
}

void JsonPrinter::value(const Json& value) {
  place();
  const std::size_t indent = 2 * open_.size();
  std::string text;
  print_wide(value, indent, indent + std::exchange(name_columns_, 0), text);
  out_ << text;
  if (open_.empty()) out_ << '\n';
}

void JsonPrinter::place() {
  if (name_columns_ != 0 || open_.empty()) return;
  out_ << (std::exchange(open_.back().empty, false) ? "\n" : ",\n")
       << std::string(2 * open_.size(), ' ');
}

}  // namespace kjudge
