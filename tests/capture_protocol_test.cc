// SPDX-License-Identifier: Apache-2.0
#include "judge/capture_protocol.h"

#include <doctest/doctest.h>

#include "json_faults.h"

using namespace kjudge;

TEST_CASE("every field of a capture's status refuses every wrong kind, and names itself") {
  const std::string_view right =
      "{\"format\": \"kjudge-capture-status/1\", \"verdict\": \"refused\", \"rule\": \"r\", "
      "\"message\": \"m\", \"traceback\": \"t\", "
      "\"seconds\": {\"import\": 1, \"prepare\": 2, \"capture\": 3, \"export\": 4}}";
  CHECK(parse_capture_status(right).seconds.export_ == 4);
  const int tried = json_faults::try_every_fault(
      parse_json(right, "right", Fault::bug), capture_status_json_format().schema,
      [](const std::string& faulty) { parse_capture_status(faulty); }, {.file = "status.json"});
  CHECK(tried > 80);
}
