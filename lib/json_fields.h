// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

Json object_schema(Json::Object properties, std::vector<std::string> required);
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
