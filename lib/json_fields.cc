// SPDX-License-Identifier: Apache-2.0
#include "json_fields.h"

#include <algorithm>
#include <utility>

namespace kjudge {

FieldHead::FieldHead() = default;
FieldHead::FieldHead(std::string_view named, std::string_view said, const KindNote& kind)
    : KindNote(kind), name(named), doc(said) {}
FieldHead::FieldHead(const FieldHead&) = default;
FieldHead::FieldHead(FieldHead&&) noexcept = default;
FieldHead& FieldHead::operator=(const FieldHead&) = default;
FieldHead& FieldHead::operator=(FieldHead&&) noexcept = default;
FieldHead::~FieldHead() = default;

KindNote each_kind(const KindNote& item) {
  KindNote each(cat("a list, each ", item.expected),
                Json{Json::Object{{"type", Json{std::string("array")}}, {"items", item.schema}}});
  each.fields = item.fields;
  return each;
}

std::vector<FieldNote> field_notes(const FieldHeads& heads) {
  std::vector<FieldNote> notes;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const FieldHead& head = heads[i];
    notes.push_back({head.name, head.doc, head.expected, head.required, head.absent, head.fields});
  }
  return notes;
}

Json object_schema(const FieldHeads& heads) {
  Json::Object properties;
  Json::List needed;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const FieldHead& head = heads[i];
    Json schema = head.schema;
    if (auto* members = std::get_if<Json::Object>(&schema.value)) {
      members->insert(members->begin(), {"description", Json{head.doc}});
      if (head.absent) members->push_back({"default", *head.absent});
      if (head.derived) members->push_back({"readOnly", Json{true}});
    }
    properties.push_back({head.name, std::move(schema)});
    if (head.required) needed.push_back(Json{head.name});
  }
  return Json{Json::Object{{"type", Json{std::string("object")}},
                           {"properties", Json{std::move(properties)}},
                           {"required", Json{std::move(needed)}},
                           {"additionalProperties", Json{false}}}};
}

FieldMatch::FieldMatch(const JsonCursor& at, FieldHeads heads, std::string_view tag)
    : at_(at), heads_(heads), tag_(tag), found_(heads.size()) {
  const auto* object = at.get_if<Json::Object>();
  if (object == nullptr) at.expected("an object");
  for (const JsonMember& member : *object) {
    std::size_t i = 0;
    while (i < heads_.size() && heads_[i].name != member.name) ++i;
    if (i < heads_.size()) {
      found_[i] = &member;
    } else if (unknown_ == nullptr && (tag.empty() || member.name != tag)) {
      unknown_ = &member;
    }
  }
}

const JsonMember* FieldMatch::member(std::size_t field) const {
  const FieldHead& head = heads_[field];
  if (found_[field] == nullptr && head.required) {
    at_.fail(cat("field \"", head.name, "\" is missing; expected ", head.expected));
  }
  return found_[field];
}

void FieldMatch::refuse_unknown() const {
  if (unknown_ == nullptr) return;
  std::string known(tag_);
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    known += cat(known.empty() ? "" : ", ", heads_[i].name);
  }
  JsonCursor(at_, *unknown_).fail(cat("unknown field; the fields here are ", known));
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

Json tagged_schema(Json schema, const std::string& tag, const std::string& word) {
  for (JsonMember& part : std::get<Json::Object>(schema.value)) {
    if (part.name == "properties") {
      auto& properties = std::get<Json::Object>(part.value.value);
      properties.insert(properties.begin(), {tag, Json{Json::Object{{"const", Json{word}}}}});
    } else if (part.name == "required") {
      auto& list = std::get<Json::List>(part.value.value);
      list.insert(list.begin(), Json{tag});
    }
  }
  return schema;
}

Json one_of_schema(Json::List schemas) {
  return Json{Json::Object{{"oneOf", Json{std::move(schemas)}}}};
}

const JsonMember& tag_at(const JsonCursor& at, const std::string& tag, const KindNote& words) {
  const auto* object = at.get_if<Json::Object>();
  if (object == nullptr) at.expected(cat("an object with \"", tag, "\": ", words.expected));
  for (const JsonMember& part : *object) {
    if (part.name == tag) return part;
  }
  at.fail(cat("field \"", tag, "\" is missing; expected ", words.expected));
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

}  // namespace kjudge
