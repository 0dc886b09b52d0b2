// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "json.h"
#include "json_text.h"
#include "unicode.h"

namespace kjudge {
namespace {

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
      fail(cat(where, where.empty() ? "" : ": ", "no field takes a number beyond 1.7e308, found ",
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

}  // namespace

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

}  // namespace kjudge
