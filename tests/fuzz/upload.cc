// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of an upload: taken or refused with a status, the same in one piece or
// many, and what is taken is what another reader of JSON finds.

#include "web/server/upload.h"

#include <cstdlib>
#include <optional>

#include "file.h"
#include "json.h"
#include "web/server/http.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

void require(bool held) {
  if (!held) std::abort();
}

struct Outcome {
  int status = 200;
  std::string content;
  UploadRequest request;
};

Outcome take(std::string_view body, std::size_t piece) {
  const TempDir folder("kjudge-fuzz");
  Outcome outcome;
  UploadReader reader(folder.path() / "content", 1 << 16);
  try {
    for (std::size_t at = 0; at < body.size(); at += piece) reader.take(body.substr(at, piece));
    outcome.request = reader.finish();
    outcome.content = read_file(folder.path() / "content");
  } catch (const HttpProblem& problem) {
    outcome.status = problem.status();
    require(outcome.status == 400 || outcome.status == 413);
    require(problem.what()[0] != '\0');
  }
  return outcome;
}

const std::string* text_of(const Json& json, std::string_view name) {
  for (const JsonMember& member : std::get<Json::Object>(json.value)) {
    if (member.name == name) return std::get_if<std::string>(&member.value.value);
  }
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const Outcome whole = take(body, body.size() + 1), bytes = take(body, 1);
  require(whole.status == bytes.status && whole.content == bytes.content);
  if (whole.status != 200) return 0;
  const Json json = parse_json(body, "upload", Fault::bug);
  require(*text_of(json, "run") == whole.request.run);
  require(*text_of(json, "id") == whole.request.id);
  require(*text_of(json, "file") == whole.request.file);
  const std::string* code = text_of(json, "code");
  require(code == nullptr || *code == whole.content);
  return 0;
}
