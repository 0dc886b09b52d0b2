// SPDX-License-Identifier: Apache-2.0
#include "json_kinds.h"

#include <regex.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "json_text.h"
#include "unicode.h"

namespace kjudge {
namespace {

// "2^40" for large powers of two, shortest digits otherwise.
std::string bound_text(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  if (std::fabs(fraction) == 0.5 && exponent > 32) {
    return cat(value < 0 ? "-" : "", "2^", exponent - 1);
  }
  const std::string text = json_number(value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

}  // namespace

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

KindNote::KindNote() = default;
KindNote::KindNote(std::string what, Json described)
    : expected(std::move(what)), schema(std::move(described)) {}
KindNote::KindNote(const KindNote&) = default;
KindNote::KindNote(KindNote&&) noexcept = default;
KindNote& KindNote::operator=(const KindNote&) = default;
KindNote& KindNote::operator=(KindNote&&) noexcept = default;
KindNote::~KindNote() = default;

Json integer_schema(std::int64_t low, std::int64_t high) {
  return Json{Json::Object{
      {"type", Json{std::string("integer")}}, {"minimum", Json{low}}, {"maximum", Json{high}}}};
}

std::string words_text(const std::vector<std::string>& words) {
  KJ_CHECK(!words.empty());
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += cat("\"", words[i], "\"");
  }
  return text;
}

Json words_schema(std::vector<std::string> words) {
  Json::List names;
  for (std::string& word : words) names.push_back(Json{std::move(word)});
  return Json{Json::Object{{"enum", Json{std::move(names)}}}};
}

std::string list_text(std::size_t least, std::size_t most) {
  return cat("a list of ", least == 0 ? "at most " : cat(least, " to "), most, " items");
}

Json list_schema(Json item, std::size_t least, std::size_t most) {
  return Json{Json::Object{{"type", Json{std::string("array")}},
                           {"minItems", Json{static_cast<std::int64_t>(least)}},
                           {"maxItems", Json{static_cast<std::int64_t>(most)}},
                           {"items", std::move(item)}}};
}

Json map_schema(Json name, Json item) {
  return Json{Json::Object{{"type", Json{std::string("object")}},
                           {"propertyNames", std::move(name)},
                           {"additionalProperties", std::move(item)}}};
}

const Json::List& list_at(const JsonCursor& at, std::string_view what, std::size_t least,
                          std::size_t most) {
  const auto* list = at.get_if<Json::List>();
  if (list == nullptr) at.expected(what);
  if (list->size() < least || list->size() > most) {
    at.fail(cat("expected ", what, ", found ", list->size()));
  }
  return *list;
}

void check_name(const JsonCursor& at, const std::string& member, const Kind<std::string>& name) {
  const Json key{member};
  try {
    name.read(JsonCursor(key, {}, Fault::malformed));
  } catch (const Error&) {
    at.fail(cat("expected ", name.expected, ", found the name ", describe(key)));
  }
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
  return string_kind(
      cat("one line of visible text, ", least == 0 ? "at most " : cat(least, " to "), limit,
          " bytes"),
      limit, [=](const std::string& text) { return text.size() >= least && shows_as_it_is(text); },
      {{"pattern", Json{cat("^[^", hidden_characters_pattern(), "]*$")}},
       {"minLength", Json{static_cast<std::int64_t>(least > 0)}}});
}

Kind<std::string> hexadecimal_kind(int digits) {
  return matching_kind(cat(digits, " hexadecimal digits"), cat("[0-9a-f]{", digits, "}"));
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
