// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "error.h"
#include "json.h"

namespace kjudge {

// What a field of a format may hold: how a value of a C++ type is read, written and described.

// A value and where it stands. Children refer to their parent, which must outlive them.
class JsonCursor {
 public:
  JsonCursor(const Json& document, std::string_view file, Fault fault)
      : json_(&document), file_(file), fault_(fault) {}
  JsonCursor(const JsonCursor& parent, const JsonMember& member)
      : JsonCursor(member.value, parent.file_, parent.fault_) {
    parent_ = &parent;
    name_ = &member.name;
  }
  JsonCursor(const JsonCursor& parent, const Json& item, std::size_t index)
      : JsonCursor(item, parent.file_, parent.fault_) {
    parent_ = &parent;
    index_ = index;
  }

  const Json& json() const { return *json_; }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&json_->value);
  }

  std::string path() const;  // "shapes[2].dims.rows"; empty for the document
  // Throws "`file`: `path`: `message`".
  [[noreturn]] void fail(std::string_view message) const;
  // Throws "...: expected `what`, found ..." with the value.
  [[noreturn]] void expected(std::string_view what) const;

 private:
  const Json* json_;
  std::string_view file_;
  Fault fault_;
  const JsonCursor* parent_ = nullptr;
  const std::string* name_ = nullptr;
  std::size_t index_ = 0;
};

// A field of a table without its type: what a manual page says of it.
struct FieldNote {
  std::string name, doc;
  std::string expected;  // empty: derived, so nothing is expected
  bool required = true;
  std::optional<Json> absent;        // the value that it has where it is absent
  std::vector<FieldNote> fields;     // of the object, or of each object of the list or map
  std::vector<std::string> only_of;  // words of the tag with which it may stand; empty: all
};

// What is said of a kind whatever its V.
struct KindNote {
  std::string expected;  // "a number from 0 to 1", as an error says it
  Json schema;
  std::vector<FieldNote> fields;  // where it is made of objects that a table describes

  // Not in the header, here as below: each format would make them again for each of its types.
  KindNote();
  KindNote(std::string what, Json described);
  KindNote(const KindNote&);
  KindNote(KindNote&&) noexcept;
  KindNote& operator=(const KindNote&);
  KindNote& operator=(KindNote&&) noexcept;
  ~KindNote();
};

// How a V stands in JSON.
template <class V>
struct Kind : KindNote {
  std::function<V(const JsonCursor&)> read;
  std::function<Json(const V&)> write;
  std::function<void(const V&, JsonPrinter&)> print;  // where it is too large to write() whole

  Kind() = default;
  Kind(std::string what, std::function<V(const JsonCursor&)> reader,
       std::function<Json(const V&)> writer, Json described)
      : KindNote(std::move(what), std::move(described)),
        read(std::move(reader)),
        write(std::move(writer)) {}
};

// Bounds in words: "from 1 to 2^40", "of at least 0", empty without bounds.
std::string range_text(double low, double high);

Kind<bool> boolean_kind();
// Finite; -0 keeps its sign.
Kind<double> number_kind(double low = -std::numeric_limits<double>::infinity(),
                         double high = std::numeric_limits<double>::infinity());
// Also "nan", "infinity" and "-infinity", which JSON numbers lack.
Kind<double> any_number_kind();
// Any text up to `limit` bytes.
Kind<std::string> text_kind(std::size_t limit = 1 << 20);
// One line that shows as it is (unicode.h), `least` to `limit` bytes: what people are shown.
Kind<std::string> line_kind(std::size_t least = 0, std::size_t limit = 1000);
// What the whole of `pattern` matches, up to 200 bytes; `what` says it in words. A POSIX extended
// regular expression that means the same in a JSON Schema.
Kind<std::string> matching_kind(std::string what, std::string pattern);
// So many digits, in small letters: a SHA-256 has 64.
Kind<std::string> hexadecimal_kind(int digits);

// What the kinds below have in common, whatever their V.
Json integer_schema(std::int64_t low, std::int64_t high);
std::string words_text(const std::vector<std::string>& words);
Json words_schema(std::vector<std::string> words);
std::string list_text(std::size_t least, std::size_t most);
Json list_schema(Json item, std::size_t least, std::size_t most);
Json map_schema(Json name, Json item);
// The list that stands there, if its length is right.
const Json::List& list_at(const JsonCursor& at, std::string_view what, std::size_t least,
                          std::size_t most);
// Fails unless a member of a map may have that name.
void check_name(const JsonCursor& at, const std::string& member, const Kind<std::string>& name);

template <class T>
Kind<T> integer_kind(T low, T high) {
  static_assert(std::is_integral_v<T>);
  KJ_CHECK(std::in_range<std::int64_t>(low) && std::in_range<std::int64_t>(high));
  Kind<T> kind;
  kind.expected = "an integer " + range_text(static_cast<double>(low), static_cast<double>(high));
  kind.read = [=, what = kind.expected](const JsonCursor& at) {
    const auto* value = at.get_if<std::int64_t>();
    if (value == nullptr || std::cmp_less(*value, low) || std::cmp_greater(*value, high)) {
      at.expected(what);
    }
    return static_cast<T>(*value);
  };
  kind.write = [](const T& value) {
    KJ_CHECK(std::in_range<std::int64_t>(value));
    return Json{static_cast<std::int64_t>(value)};
  };
  kind.schema = integer_schema(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
  return kind;
}

// One of a few words, each a value of E.
template <class E>
Kind<E> word_kind(std::vector<std::pair<std::string, E>> words) {
  Kind<E> kind;
  std::vector<std::string> names;
  for (const auto& [word, value] : words) names.push_back(word);
  kind.expected = words_text(names);
  kind.schema = words_schema(std::move(names));
  kind.read = [words, what = kind.expected](const JsonCursor& at) {
    if (const auto* text = at.get_if<std::string>()) {
      for (const auto& [word, value] : words) {
        if (word == *text) return value;
      }
    }
    at.expected(what);
  };
  kind.write = [words](const E& wanted) {
    for (const auto& [word, value] : words) {
      if (value == wanted) return Json{word};
    }
    throw Error(Fault::bug, "a value has no word in its JSON format");
  };
  return kind;
}

template <class V>
Kind<std::vector<V>> list_kind(Kind<V> item, std::size_t least = 0, std::size_t most = 1'000'000) {
  Kind<std::vector<V>> kind;
  kind.expected = list_text(least, most);
  kind.schema = list_schema(item.schema, least, most);
  kind.fields = item.fields;
  kind.write = [write = item.write](const std::vector<V>& values) {
    Json::List list;
    for (const V& value : values) list.push_back(write(value));
    return Json{std::move(list)};
  };
  kind.read = [=, read = item.read, what = kind.expected](const JsonCursor& at) {
    const Json::List& list = list_at(at, what, least, most);
    std::vector<V> values;
    values.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      values.push_back(read(JsonCursor(at, list[i], i)));
    return values;
  };
  return kind;
}

// An object whose member names are the author's; `name` says which are allowed. Keeps their order.
template <class V>
Kind<std::vector<std::pair<std::string, V>>> map_kind(Kind<std::string> name, Kind<V> item) {
  using Map = std::vector<std::pair<std::string, V>>;
  Kind<Map> kind;
  kind.expected = cat("an object whose members are each ", item.expected);
  kind.schema = map_schema(name.schema, item.schema);
  kind.fields = item.fields;
  kind.write = [write = item.write](const Map& map) {
    Json::Object object;
    for (const auto& [key, value] : map) object.push_back({key, write(value)});
    return Json{std::move(object)};
  };
  kind.read = [name, read = item.read, what = kind.expected](const JsonCursor& at) {
    const auto* object = at.get_if<Json::Object>();
    if (object == nullptr) at.expected(what);
    Map map;
    for (const JsonMember& member : *object) {
      const JsonCursor here(at, member);
      check_name(here, member.name, name);
      map.emplace_back(member.name, read(here));
    }
    return map;
  };
  return kind;
}

}  // namespace kjudge
