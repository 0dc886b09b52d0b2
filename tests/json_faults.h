// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every mistake that can be made in a JSON document that is right: each value of a wrong kind, each
// field missing, an unknown field in each object. A reader must refuse each and name the place.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "json.h"

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

struct Rules {
  std::string file;
  std::vector<std::string> maps = {};      // names of objects whose members the author names
  std::vector<std::string> optional = {};  // fields that may be missing; found out when empty
  std::vector<std::string> ignored = {};   // fields that are not read
  std::vector<std::string> any = {};       // fields, or maps, of more than one kind: not tried
};

inline bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Numbers are one kind: an integer may stand where a number is expected.
inline int kind_of(const Json& json) {
  const auto index = static_cast<int>(json.value.index());
  return index == 3 ? 2 : index;
}

class Faults {
 public:
  Faults(const Json& right, std::function<void(const Json&)> read, Rules rules)
      : document_(right), read_(std::move(read)), rules_(std::move(rules)) {}

  int run() {
    CHECK_MESSAGE(message_of([&] { read_(document_); }) == "no error",
                  message_of([&] { read_(document_); }));
    visit(document_, "", "");
    return tried_;
  }

 private:
  void must_fail(const std::string& path, const std::string& what) {
    ++tried_;
    const std::string message = message_of([&] { read_(document_); });
    const std::string where = path.empty() ? rules_.file + ": " : rules_.file + ": " + path + ": ";
    if (!message.starts_with(where)) FAIL_CHECK(path << ": " << what << ": " << message);
  }

  void visit(Json& value, const std::string& path, const std::string& name) {
    if (listed(rules_.ignored, name) || listed(rules_.any, name)) return;
    const Json wrong[] = {Json{},
                          Json{true},
                          Json{std::int64_t{-99}},
                          Json{1e300},
                          Json{std::string("\xe2\x98\x83")},
                          Json{Json::List{}},
                          Json{Json::Object{}}};
    for (const Json& other : wrong) {
      if (kind_of(other) == kind_of(value)) continue;
      const Json right = std::exchange(value, other);
      must_fail(path, "wrong kind " + print_json(other));
      value = right;
    }
    if (auto* list = std::get_if<Json::List>(&value.value)) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        visit((*list)[i], cat(path, "[", i, "]"), "");
      }
    }
    if (std::holds_alternative<Json::Object>(value.value)) visit_object(value, path, name);
  }

  void visit_object(Json& value, const std::string& path, const std::string& name) {
    auto& object = std::get<Json::Object>(value.value);
    const std::string prefix = path.empty() ? "" : path + ".";
    for (std::size_t i = 0; i < object.size(); ++i) {
      visit(object[i].value, prefix + object[i].name, object[i].name);
    }
    if (listed(rules_.maps, name)) return;
    object.push_back({"surprise", Json{true}});
    must_fail(prefix + "surprise", "unknown field");
    object.pop_back();
    for (std::size_t i = 0; i < object.size(); ++i) {
      const JsonMember member = object[i];
      object.erase(object.begin() + static_cast<std::ptrdiff_t>(i));
      const std::string message = message_of([&] { read_(document_); });
      const std::string where = cat(rules_.file, ": ", path, path.empty() ? "" : ": ", "field \"",
                                    member.name, "\" is missing; expected ");
      // Either the field is needed, and the message says so, or nothing is wrong without it.
      if (message != "no error" && !message.starts_with(where) &&
          !listed(rules_.optional, member.name)) {
        FAIL_CHECK(prefix << member.name << " left out: " << message);
      }
      ++tried_;
      object.insert(object.begin() + static_cast<std::ptrdiff_t>(i), member);
    }
  }

  Json document_;
  std::function<void(const Json&)> read_;
  Rules rules_;
  int tried_ = 0;
};

inline int try_every_fault(const Json& right, std::function<void(const Json&)> read, Rules rules) {
  return Faults(right, std::move(read), std::move(rules)).run();
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

// Names of the fields of a schema's tables: members that carry a description.
inline void collect_fields(const Json& schema, std::set<std::string>& names) {
  if (const auto* list = std::get_if<Json::List>(&schema.value)) {
    for (const Json& item : *list) collect_fields(item, names);
  }
  if (const auto* object = std::get_if<Json::Object>(&schema.value)) {
    for (const JsonMember& member : *object) {
      const auto* parts = std::get_if<Json::Object>(&member.value.value);
      if (parts != nullptr && !parts->empty() && parts->front().name == "description" &&
          std::holds_alternative<std::string>(parts->front().value.value)) {
        names.insert(member.name);
      }
      collect_fields(member.value, names);
    }
  }
}

}  // namespace kjudge::json_faults
