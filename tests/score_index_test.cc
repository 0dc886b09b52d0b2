// SPDX-License-Identifier: Apache-2.0
#include "store/score_index.h"

#include <doctest/doctest.h>

#include "file.h"
#include "store/claim.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

// One evaluated, one waiting, as version 1 of the layout left them.
struct Golden {
  TempDir folder;
  Golden() {
    fs::copy(fs::path(KJUDGE_TEST_FOLDER) / "golden/results-directory-v1/results", folder.path(),
             fs::copy_options::recursive);
    // Long ago, so that no tick of the clock is in doubt.
    fs::last_write_time(result().parent_path().parent_path(),
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  fs::path result() const { return folder.path() / "submissions/1/evaluations/1/result.json"; }
  fs::path index() const { return folder.path() / "scores.index"; }

  // As a new process finds it; `said`: what it reports.
  std::vector<ScoredSubmission> look(std::string* said = nullptr) const {
    const ResultsDirectory results(folder.path());
    ScoreIndex index(results, [&](const Error& error) {
      if (said != nullptr) *said += cat(error.what(), "\n");
    });
    index.refresh();
    index.save();
    return index.submissions();
  }
};

}  // namespace

TEST_CASE("the index of a results directory of version 1") {
  const Golden golden;
  for (int time = 0; time < 2; ++time) {  // from the files, from scores.index
    const auto found = golden.look();
    REQUIRE(found.size() == 2);
    CHECK(found[0].number == 1);
    CHECK(found[0].identity.number == 1);
    CHECK(found[0].identity.run == "ada");
    CHECK(found[0].identity.challenge == "");
    CHECK(found[0].challenge == "softmax");
    REQUIRE(found[0].evaluations.size() == 1);
    CHECK(found[0].evaluations[0].verdict == Verdict::accepted);
    CHECK(found[0].evaluations[0].terms->device_kind == "x86_64");
    CHECK(found[1].challenge == "softmax");
    CHECK(found[1].evaluations.empty());
  }
}

TEST_CASE("the index is not read where a file changed, nor written where none did") {
  const Golden golden;
  golden.look();
  // Long ago too: it may be written again in the same tick.
  const auto written = fs::last_write_time(golden.result().parent_path().parent_path());
  fs::last_write_time(golden.index(), written);
  golden.look();
  CHECK(fs::last_write_time(golden.index()) == written);

  std::string text = read_file(golden.result());
  const std::string from = "\"verdict\": \"accepted\"";
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  write_file_atomically(golden.result(), text.replace(at, from.size(), "\"verdict\": \"refused\""));
  CHECK(golden.look()[0].evaluations[0].verdict == Verdict::refused);
  CHECK(fs::last_write_time(golden.index()) != written);

  fs::remove_all(golden.folder.path() / "submissions/2");
  CHECK(golden.look().size() == 1);
  CHECK(golden.look().size() == 1);
}

TEST_CASE("what an index says is of a new evaluation what its result says, and no news twice") {
  const Golden golden;
  const ResultsDirectory results(golden.folder.path());
  ScoreIndex index(results, [](const Error&) {});
  CHECK_FALSE(index.refresh());
  const fs::path second = golden.folder.path() / "submissions/2/evaluations";
  fs::create_directories(second);
  fs::copy(golden.result().parent_path(), second / "1", fs::copy_options::recursive);
  write_file_atomically(second / "1" / "kernels.sha256", std::string(64, 'a') + "\n");
  CHECK(index.refresh());
  CHECK_FALSE(index.refresh());
  const ScoredEvaluation &first = index.find(1)->evaluations.at(0),
                         &copy = index.find(2)->evaluations.at(0);
  CHECK(copy.terms == first.terms);
  CHECK(copy.speedup == first.speedup);
  CHECK(copy.kernels == std::string(64, 'a'));
  CHECK(copy.timed);
  CHECK(copy.why_not == "");
  index.save();
  CHECK(golden.look()[1].evaluations[0].kernels == std::string(64, 'a'));
}

TEST_CASE("a claim that may be open is looked at until it is not") {
  const Golden golden;
  const ResultsDirectory results(golden.folder.path());
  ScoreIndex index(results, [](const Error&) {});
  CHECK(index.find(2)->claimed() == 0);
  {
    const auto claim = Claim::take(results.submission(2), std::chrono::seconds(1000));
    REQUIRE(claim);
    CHECK(index.refresh());
    CHECK(index.find(2)->may_be_judged);
    CHECK(index.find(2)->claimed() > 0);
    // Long ago, so that no tick of the clock is in doubt.
    fs::last_write_time(golden.folder.path() / "submissions/2/claims",
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
    index.refresh();
    CHECK(index.find(2)->may_be_judged);
  }
  fs::last_write_time(golden.folder.path() / "submissions/2/claims",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  index.refresh();
  CHECK_FALSE(index.find(2)->may_be_judged);
}

TEST_CASE("the index remembers the last number that a submission had") {
  const Golden golden;
  golden.look();
  fs::remove_all(golden.folder.path() / "submissions/2");
  CHECK(golden.look().size() == 1);
  const ResultsDirectory results(golden.folder.path());
  const auto ignore = [](const Error&) {};
  CHECK(ScoreIndex(results, ignore).last_number() == 2);
  CHECK(ScoreIndex(results, ignore, ScoreIndex::Begin::from_nothing).last_number() == 2);
  fs::remove(golden.index());
  CHECK(ScoreIndex(results, ignore).last_number() == 1);
}

TEST_CASE("an evaluation whose hash of kernels cannot be read counts all the same") {
  const Golden golden;
  const fs::path hash = golden.result().parent_path() / "kernels.sha256";
  for (const bool loop : {false, true}) {
    fs::remove_all(hash);
    fs::remove(golden.index());
    if (loop) {
      fs::create_symlink(hash.filename(), hash);
    } else {
      fs::create_directory(hash);
    }
    const auto found = golden.look();
    REQUIRE(found.size() == 2);
    CHECK(found[0].unreadable.empty());
    REQUIRE(found[0].evaluations.size() == 1);
    CHECK(found[0].evaluations[0].ranked);
  }
}

TEST_CASE("the index remembers the last number that an evaluation had") {
  const Golden golden;
  CHECK(golden.look()[0].last_evaluation == 1);
  fs::remove_all(golden.result().parent_path());
  const ResultsDirectory results(golden.folder.path());
  const auto ignore = [](const Error&) {};
  for (int time = 0; time < 2; ++time) CHECK(golden.look()[0].last_evaluation == 1);
  for (const auto begin : {ScoreIndex::Begin::from_nothing, ScoreIndex::Begin::from_file}) {
    ScoreIndex index(results, ignore, begin);
    CHECK(index.submissions()[0].last_evaluation == 1);
    CHECK(index.submissions()[0].evaluations.empty());
    index.save();
  }
  fs::remove(golden.index());
  CHECK(golden.look()[0].last_evaluation == 0);
}

TEST_CASE("a bad index is made anew") {
  const Golden golden;
  golden.look();
  std::string bytes = read_file(golden.index());
  bytes[bytes.size() / 2] ^= 1;
  write_file_atomically(golden.index(), bytes);
  std::string said;
  CHECK(golden.look(&said).size() == 2);
  CHECK(said == "");
  CHECK(read_file(golden.index()) != bytes);
}

TEST_CASE("what cannot be read is told once and not kept") {
  const Golden golden;
  write_file_atomically(golden.result(), "{");
  for (int time = 0; time < 2; ++time) {
    std::string said;
    const auto found = golden.look(&said);
    CHECK(found[0].unreadable == std::vector{1});
    CHECK(found[0].evaluations.empty());
    CHECK(said.find("result.json") != said.npos);
    CHECK(said.find("result.json") == said.rfind("result.json"));
  }
}
