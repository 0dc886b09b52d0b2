// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_set>

namespace kjudge {
namespace {

bool plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

// Length of the UTF-8 character at the front, 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool beyond = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      out += cat("\\u00", std::string(1, kDigits[static_cast<unsigned char>(c) >> 4]),
                 std::string(1, kDigits[static_cast<unsigned char>(c) & 15]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + '"';
}

// For messages: not more than that much of what a stranger wrote.
constexpr std::size_t kShown = 60;

std::string shown(std::string_view text) {
  if (text.size() <= kShown) return in_quotes(text);
  std::size_t cut = kShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return in_quotes(text.substr(0, cut)) + "...";
}

// What a member adds to the path of its object.
std::string member_path(std::string_view path, std::string_view name) {
  if (!plain_name(name) || name.size() > kShown) return cat("[", shown(name), "]");
  return cat(path.empty() ? "" : ".", name);
}

// Always with a point or an exponent, so that it reads back as a double, and -0 with its sign.
std::string number_text(double value) {
  KJ_CHECK(std::isfinite(value));
  std::array<char, 32> digits;
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-5 && size < 1e15);
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string text(digits.data(), end.ptr);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

// "2^40" for large powers of two, shortest digits otherwise.
std::string bound_text(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  if (std::fabs(fraction) == 0.5 && exponent > 32) {
    return cat(value < 0 ? "-" : "", "2^", exponent - 1);
  }
  const std::string text = number_text(value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// Builds a Json, which nlohmann's own document type could not: it lets the last of two members of
// the same name win, and it has no limits.
class Builder {
 public:
  Builder(std::string_view file, Fault fault, const JsonLimits& limits)
      : file_(file), fault_(fault), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() { return add(Json{}); }
  bool boolean(bool value) { return add(Json{value}); }
  bool number_integer(std::int64_t value) { return add(Json{value}); }
  bool number_unsigned(std::uint64_t value) {
    if (std::in_range<std::int64_t>(value)) return add(Json{static_cast<std::int64_t>(value)});
    return add(Json{static_cast<double>(value)});
  }
  bool number_float(double value, const std::string&) { return add(Json{value}); }
  bool string(std::string& value) { return add(Json{std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json{Json::Object{}}); }
  bool start_array(std::size_t) { return open(Json{Json::List{}}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (is_there(open_.back(), name)) {
      const std::string where = path();
      fail(cat(where, where.empty() ? "" : ": ", "the name ", shown(name),
               " stands twice in the same object"));
    }
    open_.back().name = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception& error) {
    constexpr int kOverflow = 406;  // of a number, the only error that has no line and column
    if (error.id == kOverflow) {
      const std::string where = next_path();
      fail(cat(where, where.empty() ? "" : ": ", "expected a number up to 1.7e308, found ",
               token.substr(0, kShown), token.size() > kShown ? "..." : ""));
    }
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    if (const auto end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
    constexpr std::size_t kMost = 300;  // it quotes all of a string that does not end
    fail(what.size() <= kMost ? what : cat(what.substr(0, kMost), "..."));
  }

 private:
  struct Open {
    Json* container;
    std::string name;                       // of the member that comes next
    std::unordered_set<std::string> names;  // of an object with many members
  };

  // Most objects have so few members that a table of them costs more than it saves.
  static bool is_there(Open& open, const std::string& name) {
    constexpr std::size_t kMany = 16;
    const auto& object = std::get<Json::Object>(open.container->value);
    if (object.size() < kMany) {
      return std::any_of(object.begin(), object.end(),
                         [&](const JsonMember& member) { return member.name == name; });
    }
    if (open.names.empty()) {
      for (const JsonMember& member : object) open.names.insert(member.name);
    }
    return !open.names.insert(name).second;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(fault_, cat(file_, ": ", what));
  }

  // "shapes[2].dims", of the innermost open container.
  std::string path() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Open& open = open_[i];
      const auto* list = std::get_if<Json::List>(&open.container->value);
      path += list != nullptr
                  ? cat("[", list->size() - 1, "]")
                  : member_path(path, std::get<Json::Object>(open.container->value).back().name);
    }
    return path;
  }

  // "shapes[2].dims.rows", of the value that comes next.
  std::string next_path() const {
    const std::string before = path();
    if (open_.empty()) return before;
    if (const auto* list = std::get_if<Json::List>(&open_.back().container->value)) {
      return cat(before, "[", list->size(), "]");
    }
    return before + member_path(before, open_.back().name);
  }

  Json* place(Json value) {
    if (++count_ > limits_.values) fail(cat("more than ", limits_.values, " values"));
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    // A container grows only while none of its items is open, so pointers to open ones hold.
    if (auto* list = std::get_if<Json::List>(&open_.back().container->value)) {
      return &list->emplace_back(std::move(value));
    }
    auto& object = std::get<Json::Object>(open_.back().container->value);
    object.push_back({std::move(open_.back().name), std::move(value)});
    return &object.back().value;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= static_cast<std::size_t>(limits_.depth)) {
      fail(cat("nested deeper than ", limits_.depth, " levels"));
    }
    open_.push_back({place(std::move(value)), {}, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view file_;
  Fault fault_;
  JsonLimits limits_;
  Json root_;
  std::vector<Open> open_;
  std::size_t count_ = 0;
};

// Tells a Builder what stands in a text, as nlohmann's parser does, three times as fast: results
// are read by the hundred thousand. Where a text is not plain JSON it gives up, and nlohmann's
// parser, which says where and why, has the word.
class PlainScanner {
 public:
  PlainScanner(std::string_view text, Builder& builder) : rest_(text), builder_(builder) {}

  // False: the builder has a part, which is to be thrown away.
  bool scan() {
    if (!value()) return false;
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    std::size_t at = 0;
    while (at < rest_.size() &&
           (rest_[at] == ' ' || rest_[at] == '\n' || rest_[at] == '\t' || rest_[at] == '\r')) {
      ++at;
    }
    rest_.remove_prefix(at);
  }

  bool take(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  // As deep as the builder lets it.
  bool value() {
    skip_blanks();
    if (rest_.empty()) return false;
    std::string text;
    switch (rest_.front()) {
      case '{':
        return object();
      case '[':
        return list();
      case '"':
        return string(text) && builder_.string(text);
      case 't':
        return take_word("true") && builder_.boolean(true);
      case 'f':
        return take_word("false") && builder_.boolean(false);
      case 'n':
        return take_word("null") && builder_.null();
      default:
        return number();
    }
  }

  bool object() {
    rest_.remove_prefix(1);
    builder_.start_object(0);
    if (take('}')) return builder_.end_object();
    do {
      std::string name;
      skip_blanks();
      if (!string(name)) return false;
      builder_.key(name);
      if (!take(':') || !value()) return false;
    } while (take(','));
    return take('}') && builder_.end_object();
  }

  bool list() {
    rest_.remove_prefix(1);
    builder_.start_array(0);
    if (take(']')) return builder_.end_array();
    do {
      if (!value()) return false;
    } while (take(','));
    return take(']') && builder_.end_array();
  }

  bool string(std::string& out) {
    if (rest_.empty() || rest_.front() != '"') return false;
    rest_.remove_prefix(1);
    for (;;) {
      std::size_t plain = 0;
      while (plain < rest_.size() && is_plain(rest_[plain])) ++plain;
      out.append(rest_, 0, plain);
      rest_.remove_prefix(plain);
      if (rest_.empty()) return false;
      const char c = rest_.front();
      if (c == '"') {
        rest_.remove_prefix(1);
        return true;
      }
      const std::size_t length = c == '\\' ? escape(out) : character(out);
      if (length == 0) return false;
      rest_.remove_prefix(length);
    }
  }

  static bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
  }

  // How many bytes it is; 0: not a plain one.
  std::size_t character(std::string& out) const {
    if (static_cast<unsigned char>(rest_.front()) < 0x20) return 0;
    const std::size_t length = utf8_length(rest_);
    out.append(rest_, 0, length);
    return length;
  }
  std::size_t escape(std::string& out) const {
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const auto which = rest_.size() < 2 ? kLetters.npos : kLetters.find(rest_[1]);
    if (which == kLetters.npos) return 0;
    out += kMeant[which];
    return 2;
  }

  bool number() {
    const auto is_digit = [&](std::size_t at) {
      return at < rest_.size() && rest_[at] >= '0' && rest_[at] <= '9';
    };
    std::size_t end = rest_.front() == '-' ? 1 : 0;
    if (!is_digit(end) || (rest_[end] == '0' && is_digit(end + 1))) return false;
    while (is_digit(end)) ++end;
    const bool whole =
        end == rest_.size() || (rest_[end] != '.' && rest_[end] != 'e' && rest_[end] != 'E');
    if (whole) {
      std::int64_t value = 0;
      if (std::from_chars(rest_.data(), rest_.data() + end, value).ec != std::errc()) return false;
      rest_.remove_prefix(end);
      return builder_.number_integer(value);
    }
    if (rest_[end] == '.') {
      if (!is_digit(++end)) return false;
      while (is_digit(end)) ++end;
    }
    if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      ++end;
      if (end < rest_.size() && (rest_[end] == '+' || rest_[end] == '-')) ++end;
      if (!is_digit(end)) return false;
      while (is_digit(end)) ++end;
    }
    double value = 0;
    if (std::from_chars(rest_.data(), rest_.data() + end, value).ec != std::errc()) return false;
    rest_.remove_prefix(end);
    return builder_.number_float(value, {});
  }

  std::string_view rest_;
  Builder& builder_;
};

constexpr std::size_t kLineWidth = 120;

// The value on one line; stops early once longer than `room`.
void print_flat(const Json& json, std::size_t room, std::string& out) {
  struct Printer {
    std::size_t room;
    std::string& out;
    void operator()(std::nullptr_t) const { out += "null"; }
    void operator()(bool value) const { out += value ? "true" : "false"; }
    void operator()(std::int64_t value) const { out += std::to_string(value); }
    void operator()(double value) const { out += number_text(value); }
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
    std::string operator()(double value) const { return number_text(value); }
    std::string operator()(const std::string& value) const { return shown(value); }
    std::string operator()(const Json::List&) const { return "a list"; }
    std::string operator()(const Json::Object&) const { return "an object"; }
  } text;
  return std::visit(text, json.value);
}

Json parse_json(std::string_view text, std::string_view file, Fault fault,
                const JsonLimits& limits) {
  // RFC 8259 lets a reader refuse it: others would, and a hash of the file differs.
  if (text.starts_with("\xef\xbb\xbf")) {
    throw Error(fault, cat(file, ": begins with a byte order mark; save it as UTF-8 without one"));
  }
  // nlohmann's parser takes it for the end, whatever follows.
  if (const auto at = text.find('\0'); at != text.npos) {
    throw Error(fault, cat(file, ": byte ", at, ": a NUL, which JSON has nowhere"));
  }
  if (Builder plain(file, fault, limits); PlainScanner(text, plain).scan()) return plain.take();
  Builder builder(file, fault, limits);
  KJ_CHECK(nlohmann::json::sax_parse(text, &builder));
  return builder.take();
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

std::string JsonCursor::path() const {
  if (parent_ == nullptr) return {};
  std::string path = parent_->path();
  if (name_ == nullptr) return cat(path, "[", index_, "]");
  return path + member_path(path, *name_);
}

void JsonCursor::fail(std::string_view message) const {
  const std::string where = path();
  throw Error(fault_,
              where.empty() ? cat(file_, ": ", message) : cat(file_, ": ", where, ": ", message));
}

void JsonCursor::expected(std::string_view what) const {
  fail(cat("expected ", what, ", found ", describe(*json_)));
}

std::string range_text(double low, double high) {
  if (std::isinf(low) && std::isinf(high)) return "";
  if (std::isinf(high)) return cat("of at least ", bound_text(low));
  if (std::isinf(low)) return cat("of at most ", bound_text(high));
  return cat("from ", bound_text(low), " to ", bound_text(high));
}

std::string unknown_field_text(const std::vector<std::string>& known) {
  std::string text = "unknown field; the fields here are ";
  for (std::size_t i = 0; i < known.size(); ++i) text += (i > 0 ? ", " : "") + known[i];
  return text;
}

void merge_notes(std::vector<FieldNote>& notes, std::vector<FieldNote> more,
                 const std::string& word) {
  for (FieldNote& note : more) {
    const auto same = std::find_if(notes.begin(), notes.end(), [&](const FieldNote& known) {
      return known.name == note.name && known.doc == note.doc && known.expected == note.expected;
    });
    FieldNote& into = same != notes.end() ? *same : notes.emplace_back(std::move(note));
    into.only_of.push_back(word);
  }
}

JsonFormat json_format(std::vector<FieldNote> notes, Json schema) {
  KJ_CHECK(!notes.empty() && notes[0].name == "format" && notes[0].expected.size() > 2);
  std::string format = notes[0].expected.substr(1, notes[0].expected.size() - 2);  // in quotes
  auto& object = std::get<Json::Object>(schema.value);
  object.insert(object.begin(),
                {{"$schema", Json{std::string("https://json-schema.org/draft/2020-12/schema")}},
                 {"title", Json{format}}});
  return {std::move(format), std::move(notes), std::move(schema)};
}

Json object_schema(Json::Object properties, std::vector<std::string> required) {
  Json::List names;
  for (std::string& name : required) names.push_back(Json{std::move(name)});
  return Json{Json::Object{{"type", Json{std::string("object")}},
                           {"properties", Json{std::move(properties)}},
                           {"required", Json{std::move(names)}},
                           {"additionalProperties", Json{false}}}};
}

Kind<bool> boolean_kind() {
  return {"true or false",
          [](const JsonCursor& at) {
            const auto* value = at.get_if<bool>();
            if (value == nullptr) at.expected("true or false");
            return *value;
          },
          [](const bool& value) { return Json{value}; },
          Json{Json::Object{{"type", Json{std::string("boolean")}}}}};
}

Kind<double> number_kind(double low, double high) {
  Kind<double> kind;
  const std::string range = range_text(low, high);
  kind.expected = range.empty() ? "a number" : "a number " + range;
  kind.read = [=, what = kind.expected](const JsonCursor& at) {
    double value = 0;
    if (const auto* real = at.get_if<double>()) {
      value = *real;
    } else if (const auto* integer = at.get_if<std::int64_t>()) {
      value = static_cast<double>(*integer);
    } else {
      at.expected(what);
    }
    if (!(value >= low && value <= high)) at.expected(what);
    return value;
  };
  kind.write = [](const double& value) { return Json{value}; };
  Json::Object schema = {{"type", Json{std::string("number")}}};
  if (std::isfinite(low)) schema.push_back({"minimum", Json{low}});
  if (std::isfinite(high)) schema.push_back({"maximum", Json{high}});
  kind.schema = Json{std::move(schema)};
  return kind;
}

Kind<double> any_number_kind() {
  static const Kind<double> finite = number_kind();
  static const Kind<double> special =
      word_kind<double>({{"infinity", INFINITY}, {"-infinity", -INFINITY}, {"nan", std::nan("")}});
  const std::string what = cat("a number, ", special.expected);
  return {what,
          [what](const JsonCursor& at) {
            if (at.get_if<std::string>() != nullptr) return special.read(at);
            if (at.get_if<double>() == nullptr && at.get_if<std::int64_t>() == nullptr) {
              at.expected(what);
            }
            return finite.read(at);
          },
          [](const double& value) {
            if (std::isnan(value)) return Json{std::string("nan")};
            return std::isinf(value) ? special.write(value) : finite.write(value);
          },
          Json{Json::Object{{"anyOf", Json{Json::List{finite.schema, special.schema}}}}}};
}

namespace {

Kind<std::string> string_kind(std::string what, std::size_t limit,
                              std::function<bool(const std::string&)> accepts,
                              Json::Object bounds) {
  bounds.insert(bounds.begin(), {"type", Json{std::string("string")}});
  // Bounds are in bytes, a schema's in characters: no text passes here and fails there.
  bounds.push_back({"maxLength", Json{static_cast<std::int64_t>(limit)}});
  const std::string bound = cat("at most ", limit, " bytes");
  return {what,
          [=](const JsonCursor& at) {
            const auto* text = at.get_if<std::string>();
            if (text == nullptr) at.expected(what);
            if (text->size() > limit) {
              const bool said = what.find(cat(limit, " bytes")) != what.npos;
              at.fail(cat("expected ", what, said ? "" : cat(", ", bound), ", found a string of ",
                          text->size(), " bytes"));
            }
            if (!accepts(*text)) at.expected(what);
            return *text;
          },
          [](const std::string& text) { return Json{text}; }, Json{std::move(bounds)}};
}

}  // namespace

Kind<std::string> text_kind(std::size_t limit) {
  return string_kind(cat("a string of at most ", limit, " bytes"), limit,
                     [](const std::string&) { return true; }, {});
}

Kind<std::string> line_kind(std::size_t least, std::size_t limit) {
  using namespace std::string_literals;
  return string_kind(
      cat("one line of text, ", least == 0 ? "at most " : cat(least, " to "), limit, " bytes"),
      limit,
      [=](const std::string& text) {
        return text.size() >= least && std::none_of(text.begin(), text.end(), [](char c) {
                 return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
               });
      },
      {{"pattern", Json{"^[^\0-\x1f\x7f]*$"s}},
       {"minLength", Json{static_cast<std::int64_t>(least > 0)}}});
}

Kind<std::string> matching_kind(std::string what, std::string pattern) {
  constexpr std::size_t kLimit = 200;
  const std::string whole = cat("^(", pattern, ")$");
  const std::shared_ptr<regex_t> regex(new regex_t{}, [](regex_t* compiled) {
    ::regfree(compiled);
    delete compiled;
  });
  KJ_CHECK(::regcomp(regex.get(), whole.c_str(), REG_EXTENDED | REG_NOSUB) == 0);
  return string_kind(std::move(what), kLimit,
                     [regex](const std::string& text) {
                       return text.find('\0') == text.npos &&
                              ::regexec(regex.get(), text.c_str(), 0, nullptr, 0) == 0;
                     },
                     {{"pattern", Json{whole}}});
}

}  // namespace kjudge
