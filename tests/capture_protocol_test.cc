// SPDX-License-Identifier: Apache-2.0
#include "judge/capture_protocol.h"

#include <doctest/doctest.h>

#include "json_faults.h"

using namespace kjudge;

namespace {

constexpr const char* kRefused =
    R"({"format": "kjudge-capture-status/1", "verdict": "refused", "rule": "host_node",
  "message": "node 3 is a host callback", "traceback": "line 3",
  "seconds": {"import": 0.5, "prepare": 1, "capture": 0.25}})";

}  // namespace

TEST_CASE("the status of a capture is read") {
  const CaptureStatus status = parse_capture_status(kRefused);
  CHECK(status.verdict == Verdict::refused);
  CHECK(status.rule == "host_node");
  CHECK(status.message == "node 3 is a host callback");
  CHECK(status.traceback == "line 3");
  CHECK(status.seconds.prepare == 1.0);
  CHECK_FALSE(status.seconds.export_);
}

TEST_CASE("a status cut or changed anywhere is refused, or another status") {
  const int others =
      json_faults::try_every_damage(kRefused, Fault::malformed, [](const std::string& text) {
        const CaptureStatus status = parse_capture_status(text);
        CHECK(status.verdict == Verdict::refused);
      });
  CHECK(others > 50);
}

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
