// SPDX-License-Identifier: Apache-2.0
#include "challenge/package.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "file.h"
#include "json_faults.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

const fs::path kTests = KJUDGE_TEST_FOLDER;

PackageManifest example() {
  PackageManifest manifest;
  manifest.challenge = "softmax";
  manifest.challenge_version = 3;
  manifest.challenge_sha256 = std::string(64, 'a');
  manifest.server = "https://contest.example.org:8443/kernels";
  manifest.kjudge_version = "0.1.0";
  manifest.kjudge_commit = "0123456789ab";
  manifest.arch = "x86_64";
  manifest.glibc = "2.36";
  manifest.files = {{"TASK.md", std::string(64, 'b')}, {"bin/kjudge", std::string(64, 'c')}};
  return manifest;
}

std::string golden(const std::string& name, const std::string& made) {
  const fs::path path = kTests / "golden" / "package-v1" / (name + ".json");
  if (std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr) write_file_atomically(path, made);
  return read_file(path);
}

}  // namespace

TEST_CASE("package: the golden manifest is written and reads back") {
  const std::string text = package_to_json(example());
  CHECK(text == golden("package", text));
  const PackageManifest read = package_from_json(golden("package", text), "package.json");
  CHECK(package_to_json(read) == text);
  CHECK(read.files.size() == 2);
  PackageManifest without = example();
  without.server.clear();
  CHECK(package_to_json(without).find("server") == std::string::npos);
  CHECK(package_from_json(package_to_json(without), "package.json").server.empty());
}

TEST_CASE("package: every field of a manifest refuses every wrong kind, and names itself") {
  const Json right = parse_json(package_to_json(example()), "right", Fault::bug);
  const int tried = json_faults::try_every_fault(
      right, json_format(package_table()).schema,
      [](const std::string& faulty) { package_from_json(faulty, "package.json"); },
      {.file = "package.json"});
  CHECK(tried > 80);
}

// As for other formats: tests/json_faults.h.
TEST_CASE("package: a manifest cut or changed anywhere is refused, or another manifest") {
  std::string text = package_to_json(example());
  text.pop_back();  // its last line break
  const int others = json_faults::try_every_damage(
      text, Fault::malformed,
      [](const std::string& damaged) { package_from_json(damaged, "package.json"); });
  CHECK(others > 50);
}
