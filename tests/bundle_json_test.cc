// SPDX-License-Identifier: Apache-2.0
#include "judge/bundle_json.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

using namespace kjudge;

TEST_CASE("a bundle printed piece by piece is the document that its table gives") {
  const BundleReader reader(std::filesystem::path(KJUDGE_TEST_FOLDER) /
                            "golden/bundle-v1/rich.kjb");
  std::ostringstream printed;
  print_bundle_json(reader.bundle(), printed);
  CHECK(printed.str().ends_with("}\n"));
  const Json whole{bundle_json_table().write(reader.bundle())};
  CHECK(parse_json(printed.str(), "dump", Fault::malformed) == whole);
  // And spread out as the whole is, but that no list with items stands on one line.
  CHECK(printed.str().find("{\"kind\": \"empty\"}") != std::string::npos);
}

TEST_CASE("what is printed piece by piece is laid out like the rest") {
  std::ostringstream printed;
  JsonPrinter printer(printed);
  printer.open_object();
  printer.name("a");
  printer.value(Json{std::int64_t{1}});
  printer.name("empty");
  printer.open_list();
  printer.close();
  printer.name("list");
  printer.open_list();
  printer.value(Json{Json::List{Json{true}, Json{}}});
  printer.open_object();
  printer.name("b");
  printer.value(Json{std::string("c")});
  printer.close();
  printer.close();
  printer.close();
  CHECK(printed.str() ==
        "{\n  \"a\": 1,\n  \"empty\": [],\n  \"list\": [\n    [true, null],\n    {\n      \"b\": "
        "\"c\"\n    }\n  ]\n}\n");
}
