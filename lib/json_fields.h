// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "error.h"
#include "json.h"
#include "json_kinds.h"

namespace kjudge {

// JSON formats of kjudge. A format is one table of fields per object (FieldTable); parsing, error
// texts, writing and JSON Schema all come from it. Reading is strict: duplicate and unknown fields,
// values out of range, byte order marks and invalid UTF-8 are refused, with the file and
// the path of the field:
//   packages/softmax/challenge.json: shapes[2].dims.rows: expected an integer from 1 to 2^40, found
//   "many"

// What is said of a field whatever the type of its object.
struct FieldHead : KindNote {
  std::string name;
  std::string doc;
  bool required = true;
  bool first = false;          // read before anything else is looked at: the format's own name
  bool derived = false;        // written for readers, ignored when read
  std::optional<Json> absent;  // its value where it is absent, if a T{} has one

  FieldHead();
  FieldHead(std::string_view named, std::string_view said, const KindNote& kind);
  FieldHead(const FieldHead&);
  FieldHead(FieldHead&&) noexcept;
  FieldHead& operator=(const FieldHead&);
  FieldHead& operator=(FieldHead&&) noexcept;
  ~FieldHead();
};

// One field of the object that stands for a T.
template <class T>
struct Field : FieldHead {
  Field() = default;
  explicit Field(FieldHead head) : FieldHead(std::move(head)) {}

  std::function<void(const JsonCursor&, T&)> read;     // empty where it is derived
  std::function<std::optional<Json>(const T&)> write;  // nullopt: left out
  std::function<void(const T&, JsonPrinter&)> print;   // where it is too large to write() whole
};

template <class T, class V>
Field<T> required(std::string_view name, V T::*member, const Kind<V>& kind, std::string_view doc) {
  Field<T> field(FieldHead(name, doc, kind));
  field.read = [=, read = kind.read](const JsonCursor& at, T& into) { into.*member = read(at); };
  field.write = [=, write = kind.write](const T& from) { return write(from.*member); };
  return field;
}

// A T{}, made in one place.
template <class T>
const T& blank() {
  static const T made{};
  return made;
}

// Absent: as in a T{}, and left out where it is as in a T{}.
template <class T, class V>
Field<T> optional(std::string_view name, V T::*member, const Kind<V>& kind, std::string_view doc) {
  Field<T> field = required(name, member, kind, doc);
  field.required = false;
  field.absent = kind.write(blank<T>().*member);
  field.write = [=, write = kind.write,
                 absent = *field.absent](const T& from) -> std::optional<Json> {
    Json json = write(from.*member);
    return json == absent ? std::nullopt : std::optional(std::move(json));
  };
  return field;
}

template <class T, class V>
Field<T> optional(std::string_view name, std::optional<V> T::*member, const Kind<V>& kind,
                  std::string_view doc) {
  Field<T> field(FieldHead(name, doc, kind));
  field.required = false;
  field.read = [=, read = kind.read](const JsonCursor& at, T& into) { into.*member = read(at); };
  field.write = [=, write = kind.write](const T& from) -> std::optional<Json> {
    if (!(from.*member).has_value()) return std::nullopt;
    return write(*(from.*member));
  };
  return field;
}

// No T{} has one, but every object must.
template <class T, class V>
Field<T> required(std::string_view name, std::optional<V> T::*member, const Kind<V>& kind,
                  std::string_view doc) {
  Field<T> field = optional(name, member, kind, doc);
  field.required = true;
  return field;
}

// The name and version of a format, at the top of a document: "kjudge-result/1".
template <class T>
Field<T> format_field(std::string format) {
  const Kind<bool> kind = word_kind<bool>({{format, true}});
  Field<T> field(FieldHead("format", "name and version of the format", kind));
  field.first = true;
  field.read = [read = kind.read](const JsonCursor& at, T&) { read(at); };
  field.write = [format](const T&) { return Json{format}; };
  return field;
}

// Written for readers, computed from the rest; ignored when read.
template <class T, class V>
Field<T> derived_field(std::string_view name, std::function<V(const T&)> derive,
                       const Kind<V>& kind, std::string_view doc) {
  Field<T> field(FieldHead(name, doc, kind));
  field.required = false;
  field.derived = true;
  field.expected.clear();
  field.write = [=, write = kind.write](const T& from) { return write(derive(from)); };
  return field;
}

// Of a format that is printed for others and never read.
template <class T, class V>
Field<T> printed_field(std::string_view name, std::function<V(const T&)> value, const Kind<V>& kind,
                       std::string_view doc) {
  Field<T> field(FieldHead(name, doc, kind));
  field.read = [](const JsonCursor& at, T&) { at.fail("is printed and never read"); };
  field.write = [=, write = kind.write](const T& from) { return write(value(from)); };
  return field;
}

// Of a list of any length of such items.
KindNote each_kind(const KindNote& item);

// A list whose items `visit` brings one after the other, and that is printed so.
template <class T, class V>
Field<T> printed_list(std::string_view name,
                      std::function<void(const T&, const std::function<void(const V&)>&)> visit,
                      const Kind<V>& item, std::string_view doc) {
  Field<T> field(FieldHead(name, doc, each_kind(item)));
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
  return field;
}

// The heads of a table's fields.
class FieldHeads {
 public:
  template <class T>
  explicit FieldHeads(const std::vector<Field<T>>& fields)
      : fields_(&fields),
        size_(fields.size()),
        at_([](const void* of, std::size_t i) -> const FieldHead& {
          return (*static_cast<const std::vector<Field<T>>*>(of))[i];
        }) {}

  std::size_t size() const { return size_; }
  const FieldHead& operator[](std::size_t i) const { return at_(fields_, i); }

 private:
  const void* fields_;
  std::size_t size_;
  const FieldHead& (*at_)(const void* fields, std::size_t i);
};

std::vector<FieldNote> field_notes(const FieldHeads& heads);
Json object_schema(const FieldHeads& heads);

// Which member of an object is which field's.
class FieldMatch {
 public:
  // `tag` is a member that someone else has read already.
  FieldMatch(const JsonCursor& at, FieldHeads heads, std::string_view tag);

  // Null where an optional field is absent; fails where a required one is.
  const JsonMember* member(std::size_t field) const;
  // Fails if a member is no field's.
  void refuse_unknown() const;

 private:
  const JsonCursor& at_;
  FieldHeads heads_;
  std::string_view tag_;
  std::vector<const JsonMember*> found_;
  const JsonMember* unknown_ = nullptr;
};

// All fields of the object that stands for a T.
template <class T>
class FieldTable {
 public:
  FieldTable(std::vector<Field<T>> fields) : fields_(std::move(fields)) {}

  const std::vector<Field<T>>& fields() const { return fields_; }

  // `tag` is a member that someone else has read already.
  T read(const JsonCursor& at, std::string_view tag = {}, T into = {}) const {
    const FieldMatch match(at, FieldHeads(fields_), tag);
    for (const bool first : {true, false}) {
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        if (fields_[i].first != first) continue;
        const JsonMember* member = match.member(i);
        if (member != nullptr && fields_[i].read) fields_[i].read(JsonCursor(at, *member), into);
      }
      // After the format's name, which explains a file of another version better.
      if (first) match.refuse_unknown();
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

  // Whether a field has a way to be printed without being in memory whole.
  bool prints() const {
    return std::any_of(fields_.begin(), fields_.end(),
                       [](const Field<T>& field) { return field.print != nullptr; });
  }

  std::vector<FieldNote> notes() const { return field_notes(FieldHeads(fields_)); }
  Json schema() const { return object_schema(FieldHeads(fields_)); }

 private:
  std::vector<Field<T>> fields_;
};

template <class T>
Kind<T> object_kind(FieldTable<T> table) {
  // Shared by all copies of the kind.
  const auto fields = std::make_shared<const FieldTable<T>>(std::move(table));
  Kind<T> kind;
  kind.expected = "an object";
  kind.schema = fields->schema();
  kind.fields = fields->notes();
  kind.read = [fields](const JsonCursor& at) { return fields->read(at); };
  kind.write = [fields](const T& value) { return Json{fields->write(value)}; };
  if (fields->prints()) {
    kind.print = [fields](const T& value, JsonPrinter& printer) { fields->print(value, printer); };
  }
  return kind;
}

// Adds the fields of the table for `word` to those of the tables before it.
void merge_notes(std::vector<FieldNote>& notes, std::vector<FieldNote> more,
                 const std::string& word);

// The schema of one of several tables, where the member `tag` is `word`.
Json tagged_schema(Json schema, const std::string& tag, const std::string& word);
Json one_of_schema(Json::List schemas);
// The member `tag` of the object that stands there.
const JsonMember& tag_at(const JsonCursor& at, const std::string& tag, const KindNote& words);

// An object whose member `tag` says which table describes the rest; `doc` is the tag's.
template <class T, class E>
Kind<T> tagged_kind(const std::string& tag, E T::*member, std::string doc,
                    std::vector<std::tuple<std::string, E, FieldTable<T>>> variants) {
  std::vector<std::pair<std::string, E>> words;
  Json::List schemas;
  for (const auto& [word, value, table] : variants) {
    words.emplace_back(word, value);
    schemas.push_back(tagged_schema(table.schema(), tag, word));
  }
  const Kind<E> which = word_kind(words);
  Kind<T> kind;
  kind.fields = {{tag, std::move(doc), which.expected}};
  for (const auto& [word, value, table] : variants) merge_notes(kind.fields, table.notes(), word);
  for (FieldNote& note : kind.fields) {
    if (note.only_of.size() == variants.size()) note.only_of.clear();
  }
  kind.expected = cat("an object with \"", tag, "\": ", which.expected);
  kind.schema = one_of_schema(std::move(schemas));
  const auto tables = std::make_shared<const decltype(variants)>(std::move(variants));
  kind.write = [=](const T& value) {
    for (const auto& [word, of, table] : *tables) {
      if (!(of == value.*member)) continue;
      Json::Object object = table.write(value);
      object.insert(object.begin(), {tag, Json{word}});
      return Json{std::move(object)};
    }
    throw Error(Fault::bug, cat("a value has no \"", tag, "\" in its JSON format"));
  };
  kind.read = [=](const JsonCursor& at) -> T {
    T into{};
    into.*member = which.read(JsonCursor(at, tag_at(at, tag, which)));
    for (const auto& [word, of, table] : *tables) {
      if (of == into.*member) return table.read(at, tag, std::move(into));
    }
    throw Error(Fault::bug, cat("a value has no \"", tag, "\" in its JSON format"));
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
