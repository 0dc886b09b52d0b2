// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every mistake that can be made in a JSON document that is right, found from the format's own
// table: for each field every wrong kind of value, what lies beyond both bounds, too long and too
// short, no word and no name of those allowed; each field missing, twice, and an unknown one in
// each object. A reader must refuse each and name file, path, what it expected and what it found.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "json_fields.h"

namespace kjudge::json_faults {

template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Rules {
  std::string file;
  std::vector<std::string> needed = {};  // optional fields that others of this document need
};

inline const Json* member(const Json& object, std::string_view name) {
  const auto* members = std::get_if<Json::Object>(&object.value);
  if (members == nullptr) return nullptr;
  for (const JsonMember& one : *members) {
    if (one.name == name) return &one.value;
  }
  return nullptr;
}

template <class T>
std::optional<T> member_value(const Json& object, std::string_view name) {
  const Json* found = member(object, name);
  if (found == nullptr) return std::nullopt;
  const T* value = std::get_if<T>(&found->value);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

// A schema's alternatives; itself where it has none.
inline std::vector<const Json*> alternatives(const Json& schema) {
  for (const char* word : {"oneOf", "anyOf"}) {
    if (const Json* list = member(schema, word)) {
      std::vector<const Json*> all;
      for (const Json& one : std::get<Json::List>(list->value)) {
        for (const Json* inner : alternatives(one)) all.push_back(inner);
      }
      return all;
    }
  }
  return {&schema};
}

// Whether values of the type of `json` may stand where `schema`, without alternatives, is.
inline bool takes_type(const Json& schema, const Json& json) {
  static constexpr std::string_view kTypes[] = {"null",   "boolean", "integer", "number",
                                                "string", "array",   "object"};
  const std::string_view type = kTypes[json.value.index()];
  const auto is = [&](const std::string& wanted) {
    return wanted == type || (wanted == "number" && type == "integer");
  };
  const Json* types = member(schema, "type");
  if (types == nullptr) return type == "string";  // words
  if (const auto* one = std::get_if<std::string>(&types->value)) return is(*one);
  const auto& list = std::get<Json::List>(types->value);
  return std::any_of(list.begin(), list.end(),
                     [&](const Json& one) { return is(std::get<std::string>(one.value)); });
}

class Faults {
 public:
  using Read = std::function<void(const std::string& text)>;

  Faults(const Json& right, const Json& schema, Read read, Rules rules)
      : document_(right), schema_(schema), read_(std::move(read)), rules_(std::move(rules)) {}

  int run() {
    CHECK_MESSAGE(message() == "no error", message());
    visit(document_, schema_, "");
    // A field that the document lacks, or items of a list that is empty in it, nothing would try.
    for (const auto& [key, name] : fields_of(schema_)) {
      CHECK_MESSAGE(visited_.contains(key), "the right document has no ", name);
    }
    return tried_;
  }

 private:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  std::string message() {
    return message_of([&] { read_(print_json(document_)); });
  }

  void must_fail(const std::string& path, const std::string& what,
                 std::initializer_list<std::string_view> parts) {
    ++tried_;
    const std::string said = message();
    const std::string where = path.empty() ? rules_.file + ": " : rules_.file + ": " + path + ": ";
    bool right = said.starts_with(where);
    for (std::string_view part : parts) right = right && said.find(part) != said.npos;
    if (!right) FAIL_CHECK(path << ": " << what << ": " << said.substr(0, 500));
  }

  void try_value(Json& place, Json wrong, const std::string& path, const std::string& what) {
    const Json right = std::exchange(place, std::move(wrong));
    must_fail(path, what, {"expected ", ", found "});
    place = right;
  }

  void visit(Json& value, const Json& schema, const std::string& path) {
    if (member(schema, "readOnly") != nullptr) return;
    const auto all = alternatives(schema);
    const Json kinds[] = {Json{},
                          Json{true},
                          Json{std::int64_t{1}},
                          Json{1.5},
                          Json{std::string("\xe2\x98\x83")},
                          Json{Json::List{}},
                          Json{Json::Object{}}};
    for (const Json& kind : kinds) {
      if (std::any_of(all.begin(), all.end(), [&](auto* one) { return takes_type(*one, kind); })) {
        continue;
      }
      try_value(value, kind, path, "wrong kind " + print_json(kind));
    }
    for (const Json* one : all) {
      try_bounds(value, *one, path);
      if (!takes_type(*one, value)) continue;
      if (std::holds_alternative<Json::List>(value.value)) visit_list(value, *one, path);
      if (std::holds_alternative<Json::Object>(value.value)) visit_object(value, *one, path);
    }
  }

  void try_bounds(Json& value, const Json& schema, const std::string& path) {
    for (const bool low : {true, false}) {
      const char* bound = low ? "minimum" : "maximum";
      if (const auto whole = member_value<std::int64_t>(schema, bound)) {
        try_value(value, Json{*whole + (low ? -1 : 1)}, path, bound);
      } else if (const auto real = member_value<double>(schema, bound)) {
        const double step = std::fmax(1e-6, std::fabs(*real) / 4);
        try_value(value, Json{*real + (low ? -step : step)}, path, bound);
      }
    }
    const bool pattern = member(schema, "pattern") != nullptr;
    const bool words = member(schema, "enum") != nullptr || member(schema, "const") != nullptr;
    if (pattern || words) {
      try_value(value, Json{std::string("\x01\xe2\x98\x83")}, path, "none of the texts allowed");
    }
    // What is longer than a test has memory for is a limit on memory, not on a field.
    const auto longest = member_value<std::int64_t>(schema, "maxLength");
    if (longest && *longest < 1 << 22) {
      const auto length = static_cast<std::size_t>(*longest) + 1;
      try_value(value, Json{std::string(length, 'a')}, path, "too long");
    }
    if (member_value<std::int64_t>(schema, "minLength").value_or(0) > 0) {
      try_value(value, Json{std::string()}, path, "too short");
    }
  }

  void visit_list(Json& value, const Json& schema, const std::string& path) {
    auto& list = std::get<Json::List>(value.value);
    const auto most = member_value<std::int64_t>(schema, "maxItems");
    if (most && *most <= 10'000 && !list.empty()) {
      Json::List longer(static_cast<std::size_t>(*most) + 1, list[0]);
      try_value(value, Json{std::move(longer)}, path, "too many items");
    }
    if (const auto least = member_value<std::int64_t>(schema, "minItems"); least && *least > 0) {
      Json::List shorter(static_cast<std::size_t>(*least) - 1, list.at(0));
      try_value(value, Json{std::move(shorter)}, path, "too few items");
    }
    const Json* items = member(schema, "items");
    REQUIRE(items != nullptr);
    auto& now = std::get<Json::List>(value.value);
    if (!now.empty()) visited_.insert(key_of_item(*items));
    for (std::size_t i = 0; i < now.size(); ++i) visit(now[i], *items, cat(path, "[", i, "]"));
  }

  void visit_object(Json& value, const Json& schema, const std::string& path) {
    auto& object = std::get<Json::Object>(value.value);
    const std::string prefix = path.empty() ? "" : path + ".";
    try_twice(object, path);
    const Json* properties = member(schema, "properties");
    if (properties == nullptr) {
      visit_map(object, schema, path);
      return;
    }
    for (const JsonMember& one : object) {
      const Json* field = member(*properties, one.name);
      const Json* word = field != nullptr ? member(*field, "const") : nullptr;
      if (word != nullptr && !(*word == one.value)) return;  // an alternative with another tag
    }
    for (auto& [name, inner] : object) {
      const Json* field = member(*properties, name);
      REQUIRE_MESSAGE(field != nullptr, prefix, name);
      visited_.insert(key_of(schema, name));
      visit(inner, *field, prefix + name);
    }
    object.push_back({"surprise", Json{true}});
    must_fail(prefix + "surprise", "unknown", {"unknown field; the fields here are "});
    object.pop_back();
    const auto& required = std::get<Json::List>(member(schema, "required")->value);
    for (std::size_t i = 0; i < object.size(); ++i) {
      const JsonMember left_out = object[i];
      object.erase(object.begin() + static_cast<std::ptrdiff_t>(i));
      if (std::find(required.begin(), required.end(), Json{left_out.name}) != required.end()) {
        must_fail(path, left_out.name + " missing",
                  {cat("field \"", left_out.name, "\" is missing; expected ")});
      } else if (!listed(rules_.needed, left_out.name)) {
        CHECK_MESSAGE(message() == "no error", prefix, left_out.name, " left out: ", message());
      }
      object.insert(object.begin() + static_cast<std::ptrdiff_t>(i), left_out);
    }
  }

  void visit_map(Json::Object& map, const Json& schema, const std::string& path) {
    const Json* items = member(schema, "additionalProperties");
    REQUIRE(items != nullptr);
    for (auto& [name, inner] : map) visit(inner, *items, cat(path, ".", name));
    if (map.empty()) return;
    visited_.insert(key_of_item(*items));
    const std::string name = std::exchange(map[0].name, "not a name");
    must_fail(path + "[\"not a name\"]", "a name",
              {"expected ", ", found the name \"not a name\""});
    map[0].name = name;
  }

  void try_twice(Json::Object& object, const std::string& path) {
    if (object.empty()) return;
    object.push_back(object[0]);
    must_fail(path, "twice", {cat("the name \"", object[0].name, "\" stands twice")});
    object.pop_back();
  }

  // The same table may stand in several places.
  static std::string key_of(const Json& schema, const std::string& name) {
    return name + " of " + print_flat_json(*member(schema, "properties"));
  }

  static std::string key_of_item(const Json& schema) {
    return "item of " + print_flat_json(schema);
  }

  static Fields fields_of(const Json& schema, const std::string& path = {}) {
    Fields all;
    const auto add = [&](const Json& inner, const std::string& where) {
      for (auto& one : fields_of(inner, where)) all.push_back(std::move(one));
    };
    if (member(schema, "readOnly") != nullptr) return all;
    for (const Json* one : alternatives(schema)) {
      if (const Json* properties = member(*one, "properties")) {
        for (const JsonMember& field : std::get<Json::Object>(properties->value)) {
          const std::string where = path.empty() ? field.name : path + "." + field.name;
          if (member(field.value, "readOnly") != nullptr) continue;
          all.emplace_back(key_of(*one, field.name), where);
          add(field.value, where);
        }
      }
      for (const char* word : {"items", "additionalProperties"}) {
        const Json* inner = member(*one, word);
        if (inner == nullptr || !std::holds_alternative<Json::Object>(inner->value)) continue;
        all.emplace_back(key_of_item(*inner), path + "[]");
        add(*inner, path + "[]");
      }
    }
    return all;
  }

  Json document_;
  const Json& schema_;
  Read read_;
  Rules rules_;
  std::set<std::string> visited_;
  int tried_ = 0;
};

// `right` must have every field of every table. Returns how many mistakes were tried.
inline int try_every_fault(const Json& right, const Json& schema, Faults::Read read, Rules rules) {
  return Faults(right, schema, std::move(read), std::move(rules)).run();
}

// The text cut at every length, and with every byte changed. A cut must be refused, and so must a
// changed eighth bit, which makes it no UTF-8 (the text is ASCII, and ends with its last bracket);
// any other change may give another right document, which `read` may look at. Returns how many did.
inline int try_every_damage(const std::string& text, Fault fault,
                            const std::function<void(const std::string&)>& read) {
  const auto is_refused = [&](const std::string& damaged) {
    try {
      read(damaged);
    } catch (const Error& error) {
      CHECK_MESSAGE(error.fault() == fault, error.what());
      return true;
    }
    return false;
  };
  CHECK_FALSE(is_refused(text));
  for (std::size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    CHECK(is_refused(text.substr(0, length)));
  }
  int accepted = 0;
  std::string damaged = text;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char flip : {'\x01', '\x20', '\x80', '\xff'}) {
      CAPTURE(at);
      damaged[at] = static_cast<char>(text[at] ^ flip);
      const bool refused = is_refused(damaged);
      if (flip == '\x80') CHECK(refused);
      accepted += refused ? 0 : 1;
    }
    damaged[at] = text[at];
  }
  return accepted;
}

}  // namespace kjudge::json_faults
