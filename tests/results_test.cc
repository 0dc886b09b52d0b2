// SPDX-License-Identifier: Apache-2.0
#include "store/results.h"

#include <doctest/doctest.h>

#include "file.h"
#include "json_faults.h"

using namespace kjudge;
namespace fs = std::filesystem;

TEST_CASE("every field of submission.json refuses every wrong kind, and names itself") {
  const TempDir directory;
  const fs::path file = directory.path() / "submissions" / "7" / "submission.json";
  fs::create_directories(file.parent_path());
  const std::string sha256(64, 'a');
  const std::string right =
      cat("{\"format\": \"kjudge-submission/1\", \"id\": \"u\", \"challenge\": \"softmax\", "
          "\"run\": \"ada\", \"name\": \"a.py\", "
          "\"sha256\": \"",
          sha256, "\", \"received\": \"2025-01-31T12:00:00Z\"}");
  const int tried = json_faults::try_every_fault(parse_json(right, "right", Fault::bug),
                                                 submission_table().schema(),
                                                 [&](const std::string& faulty) {
                                                   write_file_atomically(file, faulty);
                                                   ResultsDirectory(directory.path()).submission(7);
                                                 },
                                                 {.file = file.string()});
  CHECK(tried > 50);
}
