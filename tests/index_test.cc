// SPDX-License-Identifier: Apache-2.0
#include "store/index.h"

#include <doctest/doctest.h>

#include "file.h"
#include "json_faults.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

// One evaluated, one waiting, as version 1 of the layout left them.
struct Golden {
  TempDir folder;
  Golden() {
    fs::copy(fs::path(KJUDGE_TEST_FOLDER) / "golden/results-directory-v1/results", folder.path(),
             fs::copy_options::recursive);
  }
  fs::path result() const { return folder.path() / "submissions/1/evaluations/1/result.json"; }
  fs::path index() const { return folder.path() / "index.json"; }

  // As a new process finds it; `said`: what it reports.
  std::vector<IndexedSubmission> look(std::string* said = nullptr) const {
    const ResultsDirectory results(folder.path());
    StoreIndex index(results, [&](const std::string& line) {
      if (said != nullptr) *said += line + "\n";
    });
    const auto found = index.refresh();
    CHECK(index.refresh().size() == found.size());
    index.save();
    return found;
  }
};

}  // namespace

TEST_CASE("the index of a results directory of version 1") {
  const Golden golden;
  for (int time = 0; time < 2; ++time) {  // from the files, from index.json
    const auto found = golden.look();
    REQUIRE(found.size() == 2);
    CHECK(found[0].number == 1);
    CHECK(found[0].identity.number == 1);
    CHECK(found[0].identity.run == "ada");
    CHECK(found[0].identity.challenge == "");
    CHECK(found[0].challenge == "softmax");
    REQUIRE(found[0].evaluations.size() == 1);
    CHECK(found[0].evaluations[0].verdict == Verdict::accepted);
    CHECK(found[0].evaluations[0].device_kind == "x86_64");
    CHECK(found[1].challenge == "softmax");
    CHECK(found[1].evaluations.empty());
  }
}

TEST_CASE("the index is not read where a file changed, nor written where none did") {
  const Golden golden;
  golden.look();
  const auto written = fs::last_write_time(golden.index());
  golden.look();
  CHECK(fs::last_write_time(golden.index()) == written);

  std::string text = read_file(golden.result());
  const std::string from = "\"verdict\": \"accepted\"";
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  write_file_atomically(golden.result(), text.replace(at, from.size(), "\"verdict\": \"refused\""));
  CHECK(golden.look()[0].evaluations[0].verdict == Verdict::refused);
  CHECK(read_file(golden.index()).find("\"refused\"") != std::string::npos);

  fs::remove_all(golden.folder.path() / "submissions/2");
  CHECK(golden.look().size() == 1);
  CHECK(read_index(golden.folder.path()).size() == 1);
}

TEST_CASE("the index says what it is told, so it is seen to be read") {
  const Golden golden;
  golden.look();
  std::string text = read_file(golden.index());
  const auto at = text.find("\"ada\"");
  REQUIRE(at != text.npos);
  write_file_atomically(golden.index(), text.replace(at, 5, "\"eve\""));
  CHECK(golden.look()[0].identity.run == "eve");
}

TEST_CASE("a bad index is made anew") {
  const Golden golden;
  write_file_atomically(golden.index(), "{\"format\": \"kjudge-index/1\", \"submissions\": [");
  std::string said;
  CHECK(golden.look(&said).size() == 2);
  CHECK(said == "");
  CHECK(read_index(golden.folder.path()).size() == 2);
}

TEST_CASE("what cannot be read is told once and not kept") {
  const Golden golden;
  write_file_atomically(golden.result(), "{");
  for (int time = 0; time < 2; ++time) {
    std::string said;
    const auto found = golden.look(&said);
    CHECK(found[0].damaged);
    CHECK(found[0].evaluations.empty());
    CHECK(said.find("result.json") != said.npos);
    CHECK(said.find("result.json") == said.rfind("result.json"));
  }
}

TEST_CASE("every field of index.json refuses every wrong kind, and names itself") {
  const Golden golden;
  std::string text = read_file(golden.result());
  for (const auto& [from, to] :
       {std::pair("\"verdict\": \"accepted\"", "\"verdict\": \"judge_error\""),
        std::pair("\"message\": \"\"", "\"message\": \"why\"")}) {
    const auto at = text.find(from);
    REQUIRE(at != text.npos);
    text.replace(at, std::string_view(from).size(), to);
  }
  write_file_atomically(golden.result(), text);
  write_file_atomically(golden.result().parent_path() / "kernels.sha256", std::string(64, 'a'));
  const fs::path identity = golden.folder.path() / "submissions/1/submission.json";
  std::string named = read_file(identity);
  named.insert(
      named.find("\"run\""),
      "\"challenge\": \"softmax\", \"owner\": \"o\", \"contact\": \"c\", \"keep\": false, ");
  write_file_atomically(identity, named);
  golden.look();
  const int tried = json_faults::try_every_fault(
      parse_json(read_file(golden.index()), "right", Fault::bug), index_json_format().schema,
      [&](const std::string& faulty) {
        write_file_atomically(golden.index(), faulty);
        read_index(golden.folder.path());
      },
      {.file = golden.index().string()});
  CHECK(tried > 100);
}
