// SPDX-License-Identifier: Apache-2.0
#include "store/pruning.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "evaluations.h"
#include "file.h"
#include "json_faults.h"
#include "sha256.h"
#include "store/check_store.h"
#include "store/claim.h"
#include "store/judgements.h"
#include "store/rejudgement.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

constexpr const char* kNow = "2025-02-10T12:00:00Z";

struct Store {
  TempDir folder;
  ResultsDirectory results = ResultsDirectory::make(folder.path() / "results");
  std::vector<std::string> said;

  int add(const std::string& run, const std::string& text) {
    const fs::path file = folder.path() / (run + ".py");
    write_file_atomically(file, text);
    return results.add({file, run, "softmax", 1 << 20}, {});
  }

  // Its next evaluation, `ratio` times as fast as the baseline, with a recording of these bytes.
  void judge(int number, double ratio, const std::string& started, const std::string& bytes,
             Verdict verdict = Verdict::accepted) {
    StoredSubmission submission = results.submission(number);
    Evaluation made =
        evaluations::accepted({evaluations::shape("s", [=](int, int) { return ratio; })});
    made.id = cat(number, "-", submission.evaluations.size());
    made.started = started;
    made.verdict = made.shapes[0].verdict = verdict;
    made.submission_sha256 = submission.identity.sha256;
    auto claim = Claim::take(submission, std::chrono::seconds(1000));
    write_file_atomically(claim->folder() / "bundle.kjb", bytes);
    write_file_atomically(claim->folder() / "kernels.sha256", std::string(64, 'a') + "\n");
    const Fd file(::open((claim->folder() / "bundle.kjb").c_str(), O_RDONLY | O_CLOEXEC));
    made.bundle_sha256 = sha256_of_file(file.get(), "bundle");
    claim->commit(submission, made);
  }

  fs::path evaluation(int submission, int number = 1) const {
    return results.path() / "submissions" / std::to_string(submission) / "evaluations" /
           std::to_string(number);
  }

  // As "1.1 3.1": which evaluations have a recording.
  std::string kept() const {
    std::string found;
    for (const StoredSubmission& one : results.submissions([](const Error&) {})) {
      for (const int number : one.evaluations) {
        const bool bundle = fs::exists(evaluation(one.identity.number, number) / "bundle.kjb");
        CHECK(bundle != read_pruned(evaluation(one.identity.number, number)).has_value());
        if (bundle) found += cat(found.empty() ? "" : " ", one.identity.number, ".", number);
      }
    }
    return found;
  }

  PrunedCounts prune(const char* rule) {
    return prune_bundles(results, parse_keep_bundles(rule), kNow,
                         [&](const Error& error) { said.push_back(error.what()); });
  }

  std::size_t blobs() const {
    std::size_t count = 0;
    for (const auto& item : fs::recursive_directory_iterator(results.path() / "blobs")) {
      count += item.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  // But for the challenge, of which no judge kept a copy here.
  std::vector<StoreFinding> check() const {
    auto found = check_store(results.path(), {[] {}, [](const fs::path&) {}}).findings;
    std::erase_if(found, [&](const StoreFinding& one) {
      return one.path.string().starts_with((results.path() / "challenges").string());
    });
    return found;
  }
};

// ada's two, ben's one which was judged twice, and two that are not ranked.
void fill(Store& store) {
  CHECK(store.add("ada", "1") == 1);
  CHECK(store.add("ada", "2") == 2);
  CHECK(store.add("ben", "3") == 3);
  CHECK(store.add("ben", "4") == 4);
  CHECK(store.add("cyd", "5") == 5);
  store.judge(1, 1.5, "2025-02-01T12:00:00Z", "one");
  store.judge(2, 2.0, "2025-02-02T12:00:00Z", "two");
  store.judge(3, 1.2, "2025-02-03T12:00:00Z", "three");
  store.judge(3, 1.1, "2025-02-04T12:00:00Z", "three");
  store.judge(4, 1.0, "2025-02-09T12:00:00Z", "two");  // as 2
  store.judge(5, 1.0, "2025-02-05T12:00:00Z", "five", Verdict::wrong_result);
}

}  // namespace

TEST_CASE("the best of each run keep their recordings, and all is whole") {
  Store store;
  fill(store);
  CHECK(store.kept() == "1.1 2.1 3.1 3.2 4.1 5.1");
  CHECK(store.prune("all").bundles == 0);
  const std::size_t blobs = store.blobs();
  const PrunedCounts pruned = store.prune("best");
  CHECK(pruned.bundles == 3);
  CHECK(pruned.bytes == 3 + 3 + 4);
  CHECK(store.kept() == "2.1 3.1 3.2");
  CHECK(store.blobs() == blobs - 2);  // that of "two" is 2's too
  const auto mark = read_pruned(store.evaluation(1));
  REQUIRE(mark);
  CHECK(mark->bytes == 3);
  CHECK(mark->pruned == kNow);
  CHECK(mark->rule == "best");
  CHECK(store.prune("best").bundles == 0);
  CHECK(store.said.empty());
  CHECK(store.check().empty());
}

TEST_CASE("the young are kept by days, from the best on") {
  Store store;
  fill(store);
  CHECK(store.prune("9").bundles == 0);
  CHECK(store.prune("8").bundles == 1);
  CHECK(store.kept() == "2.1 3.1 3.2 4.1 5.1");
  CHECK(store.prune("5").bundles == 0);  // to the second
  CHECK(store.prune("4").bundles == 1);
  CHECK(store.kept() == "2.1 3.1 3.2 4.1");
  CHECK(read_pruned(store.evaluation(5))->rule == "4");
}

TEST_CASE("an invalid best is none; what is judged or rejudged is left alone") {
  Store store;
  fill(store);
  Invalidation invalid;
  invalid.selection.submission = 2;
  invalid.selection.to = "2025-03-01T00:00:00Z";
  invalid.reason = "a cheat";
  invalid.made = kNow;
  add_record(store.results, kInvalidationRecord, Json{invalidation_table().write(invalid)});
  Rejudgement set;
  set.challenge = "softmax";
  set.reason = "to see";
  set.made = kNow;
  set.evaluations = {{4, 1, "4-0", "ben"}};
  const int number =
      add_record(store.results, kRejudgementRecord, Json{rejudgement_table().write(set)});
  {
    const auto claim = Claim::take(store.results.submission(5), std::chrono::seconds(1000));
    CHECK(store.prune("best").bundles == 1);
  }
  CHECK(store.kept() == "1.1 3.1 3.2 4.1 5.1");
  RejudgementSet(store.results, number).end(RejudgementState::dropped);
  CHECK(store.prune("best").bundles == 2);
  CHECK(store.kept() == "1.1 3.1 3.2");
}

TEST_CASE("a judge killed between mark and removal leaves no damage, and a mark is checked") {
  Store store;
  fill(store);
  fs::copy_file(store.evaluation(1) / "bundle.kjb", store.folder.path() / "bundle.kjb");
  store.prune("best");
  fs::copy_file(store.folder.path() / "bundle.kjb", store.evaluation(1) / "bundle.kjb");
  auto found = store.check();
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == StoreFinding::Kind::left_over);
  CHECK(store.prune("best").bundles == 1);
  CHECK(store.check().empty());

  const fs::path mark = store.evaluation(1) / "pruned.json";
  fs::copy_file(store.evaluation(5) / "pruned.json", mark, fs::copy_options::overwrite_existing);
  found = store.check();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what.find("another recording") != std::string::npos);
  write_file_atomically(mark, "{");
  REQUIRE(store.check().size() == 1);
  fs::remove(mark);
  found = store.check();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what.find("is missing") != std::string::npos);
}

TEST_CASE("what to keep is all, best or days") {
  CHECK(parse_keep_bundles("all").rule == KeepBundles::Rule::all);
  CHECK(parse_keep_bundles("best").rule == KeepBundles::Rule::best);
  CHECK(parse_keep_bundles("30").days == 30);
  for (const char* wrong : {"", "0", "-1", "30d", "none", "100001", "99999999999", "1.5"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_keep_bundles(wrong), Error);
  }
}

TEST_CASE("every field of pruned.json refuses every wrong kind, and names itself") {
  Store store;
  fill(store);
  store.prune("best");
  const fs::path file = store.evaluation(1) / "pruned.json";
  const int tried = json_faults::try_every_fault(parse_json(read_file(file), "right", Fault::bug),
                                                 json_format(pruned_table()).schema,
                                                 [&](const std::string& faulty) {
                                                   write_file_atomically(file, faulty);
                                                   read_pruned(file.parent_path());
                                                 },
                                                 {.file = file.string()});
  CHECK(tried > 20);
}
