// SPDX-License-Identifier: Apache-2.0
#include "judge/formats.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "error.h"
#include "file.h"
#include "web/pages_json.h"
#include "web/server/serving_json.h"

using namespace kjudge;
namespace fs = std::filesystem;

// golden/schemas/kjudge-result-1.json; KJUDGE_WRITE_GOLDEN=1 writes them anew. A field may come and
// not go, and what was right must stay right.
TEST_CASE("the schema is the golden one, of every format") {
  const fs::path folder = fs::path(KJUDGE_TEST_FOLDER) / "golden" / "schemas";
  const bool write = std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr;
  std::vector<JsonFormat> formats = json_formats();
  formats.push_back(pages_json_format());
  formats.push_back(serving_json_format());
  std::set<std::string> names;
  for (const JsonFormat& format : formats) {
    if (format.name == "kjudge-export/1") continue;  // made of the others
    std::string name = format.name;
    name.replace(name.find('/'), 1, "-");
    CHECK_MESSAGE(names.insert(name + ".json").second, "two formats are ", format.name);
    const fs::path path = folder / (name + ".json");
    const std::string schema = print_json(format.schema);
    if (write) write_file_atomically(path, schema);
    REQUIRE_MESSAGE(fs::exists(path), path.string(), ": KJUDGE_WRITE_GOLDEN=1 writes it");
    CHECK_MESSAGE(read_file(path) == schema, path.string());
  }
  for (const auto& item : fs::directory_iterator(folder)) {
    CHECK_MESSAGE(names.contains(item.path().filename().string()), item.path().string());
  }
}
