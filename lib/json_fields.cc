// SPDX-License-Identifier: Apache-2.0
#include "json_fields.h"

#include <algorithm>

namespace kjudge {

Json object_schema(Json::Object properties, std::vector<std::string> required) {
  Json::List names;
  for (std::string& name : required) names.push_back(Json{std::move(name)});
  return Json{Json::Object{{"type", Json{std::string("object")}},
                           {"properties", Json{std::move(properties)}},
                           {"required", Json{std::move(names)}},
                           {"additionalProperties", Json{false}}}};
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

}  // namespace kjudge
