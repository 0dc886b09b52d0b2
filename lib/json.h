// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "error.h"

namespace kjudge {

// JSON formats of kjudge. A format is one table of fields per object (FieldTable); parsing, error
// texts, writing and JSON Schema all come from it. Reading is strict: duplicate and unknown fields,
// values out of range, byte order marks and invalid UTF-8 are refused, with the file and
// the path of the field:
//   packages/softmax/challenge.json: shapes[2].dims.rows: expected an integer from 1 to 2^40, found
//   "many"

struct JsonMember;

// A value. Objects keep the order of their members.
struct Json {
  using List = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Object> value;

  bool operator==(const Json&) const;
};

struct JsonMember {
  std::string name;
  Json value;
  bool operator==(const JsonMember&) const = default;
};

inline bool Json::operator==(const Json& other) const { return value == other.value; }

struct JsonLimits {
  int depth = 32;
  std::size_t values = 4'000'000;
};

// Throws `fault`, naming `file`, unless `text` is one JSON value within the limits.
Json parse_json(std::string_view text, std::string_view file, Fault fault,
                const JsonLimits& limits = {});

// Two-space indentation; what fits into 120 columns is on one line; shortest numbers that read back
// the same; bytes of a string that are no UTF-8 become U+FFFD. Ends with a newline. The same value,
// the same bytes. Numbers must be finite (Fault::bug).
std::string print_json(const Json& value);
// The same on one line, without an end of line.
std::string print_flat_json(const Json& value);

// The value as messages show it: a part of what is long.
std::string describe(const Json& value);

// Prints a document piece by piece, so that it is never in memory whole: what is opened is spread
// out, all else as print_json() does.
class JsonPrinter {
 public:
  explicit JsonPrinter(std::ostream& out) : out_(out) {}

  void open_object() { open('{'); }
  void open_list() { open('['); }
  void close();                      // what was opened last; the document's own ends the last line
  void name(std::string_view name);  // of the member that follows
  void value(const Json& value);     // a member's, an item or the document

 private:
  struct Open {
    char bracket;
    bool empty = true;
  };
  void open(char bracket);
  void place();  // where the next item stands

  std::ostream& out_;
  std::vector<Open> open_;
  std::size_t name_columns_ = 0;  // of the name that is on the line already
};

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

// How a V stands in JSON.
template <class V>
struct Kind {
  std::string expected;  // "a number from 0 to 1", as an error says it
  std::function<V(const JsonCursor&)> read;
  std::function<Json(const V&)> write;
  Json schema;
  std::vector<FieldNote> fields = {};  // where it is made of objects that a table describes
  std::function<void(const V&, JsonPrinter&)> print = {};  // where it is too large to write() whole
};

// Bounds in words: "from 1 to 2^40", "of at least 0", empty without bounds.
std::string range_text(double low, double high);
Json object_schema(Json::Object properties, std::vector<std::string> required);

Kind<bool> boolean_kind();
// Finite; -0 keeps its sign.
Kind<double> number_kind(double low = -std::numeric_limits<double>::infinity(),
                         double high = std::numeric_limits<double>::infinity());
// Also "nan", "infinity" and "-infinity", which JSON numbers lack.
Kind<double> any_number_kind();
// Any text up to `limit` bytes.
Kind<std::string> text_kind(std::size_t limit = 1 << 20);
// One line without control characters, `least` to `limit` bytes.
Kind<std::string> line_kind(std::size_t least = 0, std::size_t limit = 1000);
// What the whole of `pattern` matches, up to 200 bytes; `what` says it in words. A POSIX extended
// regular expression that means the same in a JSON Schema.
Kind<std::string> matching_kind(std::string what, std::string pattern);

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
  kind.schema = Json{Json::Object{{"type", Json{std::string("integer")}},
                                  {"minimum", Json{static_cast<std::int64_t>(low)}},
                                  {"maximum", Json{static_cast<std::int64_t>(high)}}}};
  return kind;
}

// One of a few words, each a value of E.
template <class E>
Kind<E> word_kind(std::vector<std::pair<std::string, E>> words) {
  KJ_CHECK(!words.empty());
  Kind<E> kind;
  Json::List names;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) kind.expected += i + 1 == words.size() ? " or " : ", ";
    kind.expected += cat("\"", words[i].first, "\"");
    names.push_back(Json{words[i].first});
  }
  kind.schema = Json{Json::Object{{"enum", Json{std::move(names)}}}};
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
  kind.expected = cat("a list of ", least == 0 ? "at most " : cat(least, " to "), most, " items");
  kind.schema = Json{Json::Object{{"type", Json{std::string("array")}},
                                  {"minItems", Json{static_cast<std::int64_t>(least)}},
                                  {"maxItems", Json{static_cast<std::int64_t>(most)}},
                                  {"items", item.schema}}};
  kind.fields = item.fields;
  kind.write = [write = item.write](const std::vector<V>& values) {
    Json::List list;
    for (const V& value : values) list.push_back(write(value));
    return Json{std::move(list)};
  };
  kind.read = [=, read = item.read, what = kind.expected](const JsonCursor& at) {
    const auto* list = at.get_if<Json::List>();
    if (list == nullptr) at.expected(what);
    if (list->size() < least || list->size() > most) {
      at.fail(cat("expected ", what, ", found ", list->size()));
    }
    std::vector<V> values;
    values.reserve(list->size());
    for (std::size_t i = 0; i < list->size(); ++i) {
      values.push_back(read(JsonCursor(at, (*list)[i], i)));
    }
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
  kind.schema = Json{Json::Object{{"type", Json{std::string("object")}},
                                  {"propertyNames", name.schema},
                                  {"additionalProperties", item.schema}}};
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
      const Json key{member.name};
      const JsonCursor here(at, member);
      try {
        name.read(JsonCursor(key, {}, Fault::malformed));
      } catch (const Error&) {
        here.fail(cat("expected ", name.expected, ", found the name ", describe(key)));
      }
      map.emplace_back(member.name, read(here));
    }
    return map;
  };
  return kind;
}

// One field of the object that stands for a T.
template <class T>
struct Field {
  std::string name;
  std::string doc;
  bool required = true;
  bool first = false;  // read before anything else is looked at: the format's own name
  std::string expected;
  std::function<void(const JsonCursor&, T&)> read;     // empty: present, but not read
  std::function<std::optional<Json>(const T&)> write;  // nullopt: left out
  Json schema;
  std::vector<FieldNote> fields = {};
  std::optional<Json> absent = {};  // its value where it is absent, if a T{} has one
  std::function<void(const T&, JsonPrinter&)> print = {};  // where it is too large to write() whole
};

template <class T, class V>
Field<T> required(std::string name, V T::*member, Kind<V> kind, std::string doc) {
  return {std::move(name),
          std::move(doc),
          true,
          false,
          kind.expected,
          [=, read = kind.read](const JsonCursor& at, T& into) { into.*member = read(at); },
          [=, write = kind.write](const T& from) { return write(from.*member); },
          kind.schema,
          kind.fields};
}

// Absent: as in a T{}, and left out where it is as in a T{}.
template <class T, class V>
Field<T> optional(std::string name, V T::*member, Kind<V> kind, std::string doc) {
  Field<T> field = required(std::move(name), member, kind, std::move(doc));
  field.required = false;
  field.absent = kind.write(T{}.*member);
  field.write = [=, write = kind.write,
                 absent = *field.absent](const T& from) -> std::optional<Json> {
    Json json = write(from.*member);
    return json == absent ? std::nullopt : std::optional(std::move(json));
  };
  return field;
}

template <class T, class V>
Field<T> optional(std::string name, std::optional<V> T::*member, Kind<V> kind, std::string doc) {
  return {std::move(name),
          std::move(doc),
          false,
          false,
          kind.expected,
          [=, read = kind.read](const JsonCursor& at, T& into) { into.*member = read(at); },
          [=, write = kind.write](const T& from) -> std::optional<Json> {
            if (!(from.*member).has_value()) return std::nullopt;
            return write(*(from.*member));
          },
          kind.schema,
          kind.fields};
}

// No T{} has one, but every object must.
template <class T, class V>
Field<T> required(std::string name, std::optional<V> T::*member, Kind<V> kind, std::string doc) {
  Field<T> field = optional(std::move(name), member, std::move(kind), std::move(doc));
  field.required = true;
  return field;
}

// The name and version of a format, at the top of a document: "kjudge-result/1".
template <class T>
Field<T> format_field(std::string format) {
  Kind<bool> kind = word_kind<bool>({{format, true}});
  return {"format",
          "name and version of the format",
          true,
          true,
          kind.expected,
          [read = kind.read](const JsonCursor& at, T&) { read(at); },
          [format](const T&) { return Json{format}; },
          kind.schema};
}

// Written for readers, computed from the rest; ignored when read.
template <class T, class V>
Field<T> derived_field(std::string name, std::function<V(const T&)> derive, Kind<V> kind,
                       std::string doc) {
  return {std::move(name),
          std::move(doc),
          false,
          false,
          "",
          {},
          [=, write = kind.write](const T& from) { return write(derive(from)); },
          kind.schema,
          kind.fields};
}

// Of a format that is printed for others and never read.
template <class T, class V>
Field<T> printed_field(std::string name, std::function<V(const T&)> value, Kind<V> kind,
                       std::string doc) {
  Field<T> field = derived_field(std::move(name), std::move(value), kind, std::move(doc));
  field.required = true;
  field.expected = kind.expected;
  field.read = [](const JsonCursor& at, T&) { at.fail("is printed and never read"); };
  return field;
}

// A list whose items `visit` brings one after the other, and that is printed so.
template <class T, class V>
Field<T> printed_list(std::string name,
                      std::function<void(const T&, const std::function<void(const V&)>&)> visit,
                      Kind<V> item, std::string doc) {
  Field<T> field;
  field.name = std::move(name);
  field.doc = std::move(doc);
  field.expected = cat("a list, each ", item.expected);
  field.read = [](const JsonCursor& at, T&) { at.fail("is printed and never read"); };
  field.write = [=](const T& from) {
    Json::List list;
    visit(from, [&](const V& one) { list.push_back(item.write(one)); });
    return Json{std::move(list)};
  };
  field.print = [=](const T& from, JsonPrinter& printer) {
    printer.open_list();
    visit(from, [&](const V& one) {
      if (item.print) {
        item.print(one, printer);
      } else {
        printer.value(item.write(one));
      }
    });
    printer.close();
  };
  field.schema = Json{Json::Object{{"type", Json{std::string("array")}}, {"items", item.schema}}};
  field.fields = item.fields;
  return field;
}

std::string unknown_field_text(const std::vector<std::string>& known);

// All fields of the object that stands for a T.
template <class T>
class FieldTable {
 public:
  FieldTable(std::vector<Field<T>> fields) : fields_(std::move(fields)) {}

  const std::vector<Field<T>>& fields() const { return fields_; }

  // `tag` is a member that someone else has read already.
  T read(const JsonCursor& at, std::string_view tag = {}, T into = {}) const {
    const auto* object = at.get_if<Json::Object>();
    if (object == nullptr) at.expected("an object");
    std::vector<const JsonMember*> found(fields_.size());
    const JsonMember* unknown = nullptr;
    for (const JsonMember& member : *object) {
      std::size_t i = 0;
      while (i < fields_.size() && fields_[i].name != member.name) ++i;
      if (i < fields_.size()) {
        found[i] = &member;
      } else if (unknown == nullptr && (tag.empty() || member.name != tag)) {
        unknown = &member;
      }
    }
    for (const bool first : {true, false}) {
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        const Field<T>& field = fields_[i];
        if (field.first != first) continue;
        if (found[i] != nullptr) {
          if (field.read) field.read(JsonCursor(at, *found[i]), into);
        } else if (field.required) {
          at.fail(cat("field \"", field.name, "\" is missing; expected ", field.expected));
        }
      }
      // After the format's name, which explains a file of another version better.
      if (first && unknown != nullptr) {
        std::vector<std::string> known;
        if (!tag.empty()) known.emplace_back(tag);
        for (const Field<T>& field : fields_) known.push_back(field.name);
        JsonCursor(at, *unknown).fail(unknown_field_text(known));
      }
    }
    return into;
  }

  Json::Object write(const T& from) const {
    Json::Object object;
    for (const Field<T>& field : fields_) {
      if (std::optional<Json> json = field.write(from)) {
        object.push_back({field.name, std::move(*json)});
      }
    }
    return object;
  }

  // What write() gives, printed without being in memory whole where a field has a way to.
  void print(const T& from, JsonPrinter& printer) const {
    printer.open_object();
    for (const Field<T>& field : fields_) {
      if (field.print) {
        printer.name(field.name);
        field.print(from, printer);
      } else if (std::optional<Json> json = field.write(from)) {
        printer.name(field.name);
        printer.value(*json);
      }
    }
    printer.close();
  }

  std::vector<FieldNote> notes() const {
    std::vector<FieldNote> notes;
    for (const Field<T>& field : fields_) {
      notes.push_back(
          {field.name, field.doc, field.expected, field.required, field.absent, field.fields});
    }
    return notes;
  }

  Json schema() const {
    Json::Object properties;
    std::vector<std::string> needed;
    for (const Field<T>& field : fields_) {
      Json schema = field.schema;
      if (auto* members = std::get_if<Json::Object>(&schema.value)) {
        members->insert(members->begin(), {"description", Json{field.doc}});
        if (field.absent) members->push_back({"default", *field.absent});
        if (!field.read) members->push_back({"readOnly", Json{true}});
      }
      properties.push_back({field.name, std::move(schema)});
      if (field.required) needed.push_back(field.name);
    }
    return object_schema(std::move(properties), std::move(needed));
  }

 private:
  std::vector<Field<T>> fields_;
};

template <class T>
Kind<T> object_kind(FieldTable<T> table) {
  Kind<T> kind;
  kind.expected = "an object";
  kind.schema = table.schema();
  kind.fields = table.notes();
  kind.read = [table](const JsonCursor& at) { return table.read(at); };
  kind.write = [table](const T& value) { return Json{table.write(value)}; };
  for (const Field<T>& field : table.fields()) {
    if (!field.print) continue;
    kind.print = [table](const T& value, JsonPrinter& printer) { table.print(value, printer); };
  }
  return kind;
}

// Adds the fields of the table for `word` to those of the tables before it.
void merge_notes(std::vector<FieldNote>& notes, std::vector<FieldNote> more,
                 const std::string& word);

// An object whose member `tag` says which table describes the rest; `doc` is the tag's.
template <class T, class E>
Kind<T> tagged_kind(std::string tag, E T::*member, std::string doc,
                    std::vector<std::tuple<std::string, E, FieldTable<T>>> variants) {
  std::vector<std::pair<std::string, E>> words;
  Json::List schemas;
  for (const auto& [word, value, table] : variants) {
    words.emplace_back(word, value);
    Json schema = table.schema();
    for (JsonMember& part : std::get<Json::Object>(schema.value)) {
      if (part.name == "properties") {
        auto& properties = std::get<Json::Object>(part.value.value);
        properties.insert(properties.begin(), {tag, Json{Json::Object{{"const", Json{word}}}}});
      } else if (part.name == "required") {
        auto& list = std::get<Json::List>(part.value.value);
        list.insert(list.begin(), Json{tag});
      }
    }
    schemas.push_back(std::move(schema));
  }
  const Kind<E> which = word_kind(words);
  Kind<T> kind;
  kind.fields = {{tag, std::move(doc), which.expected}};
  for (const auto& [word, value, table] : variants) merge_notes(kind.fields, table.notes(), word);
  for (FieldNote& note : kind.fields) {
    if (note.only_of.size() == variants.size()) note.only_of.clear();
  }
  kind.expected = cat("an object with \"", tag, "\": ", which.expected);
  kind.schema = Json{Json::Object{{"oneOf", Json{std::move(schemas)}}}};
  kind.write = [=](const T& value) {
    for (const auto& [word, of, table] : variants) {
      if (!(of == value.*member)) continue;
      Json::Object object = table.write(value);
      object.insert(object.begin(), {tag, Json{word}});
      return Json{std::move(object)};
    }
    throw Error(Fault::bug, cat("a value has no \"", tag, "\" in its JSON format"));
  };
  kind.read = [=, what = kind.expected](const JsonCursor& at) -> T {
    const auto* object = at.get_if<Json::Object>();
    if (object == nullptr) at.expected(what);
    for (const JsonMember& part : *object) {
      if (part.name != tag) continue;
      T into{};
      into.*member = which.read(JsonCursor(at, part));
      for (const auto& [word, of, table] : variants) {
        if (of == into.*member) return table.read(at, tag, std::move(into));
      }
    }
    at.fail(cat("field \"", tag, "\" is missing; expected ", which.expected));
  };
  return kind;
}

// A format as its readers other than kjudge want it: a JSON Schema, the field list of a manual
// page.
struct JsonFormat {
  std::string name;  // "kjudge-result/1"
  std::vector<FieldNote> fields;
  Json schema;
};
// Of a table that begins with a format_field.
JsonFormat json_format(std::vector<FieldNote> notes, Json schema);
template <class T>
JsonFormat json_format(const FieldTable<T>& table) {
  return json_format(table.notes(), table.schema());
}

}  // namespace kjudge
