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
          "\"variant\": \"softmax:float32\", \"run\": \"ada\", \"name\": \"a.py\", "
          "\"sha256\": \"",
          sha256,
          "\", \"received\": \"2025-01-31T12:00:00Z\", \"owner\": \"Ada\", \"contact\": \"me\", "
          "\"keep\": false, \"publish\": false}");
  const int tried = json_faults::try_every_fault(parse_json(right, "right", Fault::bug),
                                                 submission_table().schema(),
                                                 [&](const std::string& faulty) {
                                                   write_file_atomically(file, faulty);
                                                   ResultsDirectory(directory.path()).submission(7);
                                                 },
                                                 {.file = file.string()});
  CHECK(tried > 50);
}

TEST_CASE("every field of secret.json refuses every wrong kind, and names itself") {
  const TempDir directory;
  const fs::path file = directory.path() / "secret.json";
  const std::string right =
      cat("{\"format\": \"kjudge-secret/1\", \"evaluation\": \"u\", \"secret\": \"",
          std::string(64, 'a'), "\", \"order_seed\": \"fedcba9876543210\"}");
  const int tried = json_faults::try_every_fault(
      parse_json(right, "right", Fault::bug), secret_json_format().schema,
      [&](const std::string& faulty) {
        write_file_atomically(file, faulty);
        const ReplaySecret secret = read_replay_secret(directory.path());
        CHECK(secret.secret == std::string(64, 'a'));
        CHECK(secret.order_seed == 0xfedcba9876543210);
      },
      {.file = file.string()});
  CHECK(tried > 30);
}

TEST_CASE("no two secrets are alike") {
  const ReplaySecret one = draw_replay_secret(), other = draw_replay_secret();
  CHECK(one.evaluation != other.evaluation);
  CHECK(one.secret != other.secret);
  CHECK(one.order_seed != other.order_seed);
  CHECK(one.order_seed != 0);  // which asks for one to be drawn
  const TempDir directory;
  CHECK(json_faults::message_of([&] {
          read_replay_secret(directory.path());
        }).find("secret.json: no such file; the hidden inputs") != std::string::npos);
}

TEST_CASE("what begins after utc_now_and_over() has a later time") {
  const std::string now = utc_now_and_over();
  CHECK(utc_now() > now);
}
