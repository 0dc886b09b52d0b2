// SPDX-License-Identifier: Apache-2.0
#include "store/claim.h"

#include <doctest/doctest.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "error.h"
#include "file.h"
#include "json_faults.h"
#include "store/identity.h"
#include "store/numbered_folders.h"
#include "syscall_filter.h"
#include "unfinished.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kLong{1000};

struct Store {
  TempDir folder;
  ResultsDirectory results = ResultsDirectory::make(folder.path() / "results");

  StoredSubmission add(const std::string& run, const std::string& text) {
    const fs::path file = folder.path() / (run + ".py");
    write_file_atomically(file, text);
    return results.submission(results.add({file, run, "softmax", 1 << 20}, {}));
  }
};

Evaluation some_evaluation(const std::string& id) {
  Evaluation evaluation;
  evaluation.id = id;
  evaluation.challenge = "softmax";
  evaluation.challenge_sha256 = std::string(64, 'a');
  evaluation.submission = "ada.py";
  evaluation.submission_sha256 = std::string(64, 'b');
  evaluation.kjudge_version = "1";
  evaluation.driver = "host 1.0";
  evaluation.device = "processor";
  evaluation.arch = "x86_64";
  evaluation.node = "here";
  evaluation.trust = "process";
  evaluation.started = utc_now();
  evaluation.verdict = Verdict::refused;
  return evaluation;
}

fs::path lease_of(const StoredSubmission& submission, int attempt) {
  return submission.folder / "claims" / std::to_string(attempt) / "lease.json";
}

// As after so long without a sign of life, or with a clock that was set back.
void age(const fs::path& lease, int seconds) {
  const auto written = fs::last_write_time(lease);
  fs::last_write_time(lease, written - std::chrono::seconds(seconds));
}

// As another process of this machine left it.
void change_holder(const fs::path& lease, const std::string& from, const std::string& to) {
  std::string text = read_file(lease);
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  write_file_atomically(lease, text.replace(at, from.size(), to));
}

}  // namespace

TEST_CASE("a claim is one process's until it is given up") {
  Store store;
  const StoredSubmission submission = store.add("ada", "1");
  CHECK_FALSE(open_claim(submission.folder));
  {
    const auto claim = Claim::take(submission, kLong);
    REQUIRE(claim);
    CHECK(claim->attempt() == 1);
    CHECK(claim->held());
    CHECK(open_claim(submission.folder) == 1);
    CHECK_FALSE(Claim::take(submission, kLong));
  }
  CHECK_FALSE(open_claim(submission.folder));
  const auto again = Claim::take(submission, kLong);
  REQUIRE(again);
  CHECK(again->attempt() == 2);
}

TEST_CASE("a verdict is stored once, and its number is told") {
  Store store;
  StoredSubmission submission = store.add("ada", "1");
  auto claim = Claim::take(submission, kLong);
  REQUIRE(claim);
  write_file_atomically(claim->folder() / "bundle.kjb", "bundle");
  CHECK(claim->commit(submission, some_evaluation("first")) == 1);
  CHECK(submission.evaluations == std::vector{1});
  CHECK_FALSE(claim->commit(submission, some_evaluation("second")));
  CHECK(store.results.submission(1).evaluations == std::vector{1});
  CHECK(read_file(submission.folder / "evaluations/1/bundle.kjb") == "bundle");
  CHECK(latest_evaluation(submission)->id == "first");
  CHECK(read_lease(submission.folder / "claims/1").evaluation == 1);
  { const auto given_up = Claim::take(submission, kLong); }
  CHECK(read_lease(submission.folder / "claims/2").evaluation == 0);
}

TEST_CASE("a holder whose lease is over cannot store, whether the other one has or not") {
  for (const bool stored : {false, true}) {
    Store store;
    StoredSubmission submission = store.add("ada", "1");
    StoredSubmission seen = submission;
    auto late = Claim::take(submission, kLong);
    REQUIRE(late);
    age(lease_of(submission, 1), 999);
    CHECK_FALSE(Claim::take(submission, kLong));
    age(lease_of(submission, 1), 3);
    auto claim = Claim::take(submission, kLong);
    REQUIRE(claim);
    CHECK(claim->attempt() == 2);
    CHECK_FALSE(late->held());
    if (stored) CHECK(claim->commit(submission, some_evaluation("other")) == 1);
    CHECK_FALSE(late->commit(seen, some_evaluation("late")));
    CHECK(claim->held() == !stored);
    late.reset();  // gives up nothing of the other's
    CHECK(claim->held() == !stored);
    CHECK(store.results.submission(1).evaluations.size() == (stored ? 1 : 0));
  }
}

TEST_CASE("of a commit and a take-over at the same moment one happens") {
  // From when one happens to when the other does, by as many steps.
  constexpr int kSteps = 20;
  std::chrono::duration<double> whole(0);
  int committed = 0;
  for (int step = 0; step <= kSteps; ++step) {
    Store store;
    StoredSubmission submission = store.add("ada", "1");
    auto late = Claim::take(submission, kLong);
    age(lease_of(submission, 1), 2000);
    StoredSubmission seen = submission;
    std::optional<int> number;
    std::thread other([&] {
      const auto start = std::chrono::steady_clock::now();
      number = late->commit(seen, some_evaluation("late"));
      if (step == 0) whole = std::chrono::steady_clock::now() - start;
    });
    if (step == 0) other.join();
    std::this_thread::sleep_for(whole * step / kSteps);
    const auto claim = Claim::take(submission, kLong);
    if (step != 0) other.join();
    CHECK(store.results.submission(1).evaluations.size() == (number ? 1 : 0));
    committed += number ? 1 : 0;
  }
  MESSAGE(committed, " of ", kSteps + 1, " were in time");
}

TEST_CASE("a holder that ended is not waited for, one of elsewhere is") {
  Store store;
  const StoredSubmission submission = store.add("ada", "1");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  const auto claim = Claim::take(submission, kLong);
  const fs::path lease = lease_of(submission, 1);
  const std::string own = cat("\"pid\": ", ::getpid());
  ::waitpid(child, nullptr, 0);

  SUBCASE("the process is gone") {
    change_holder(lease, own, cat("\"pid\": ", child));
    CHECK(Claim::take(submission, kLong));
  }
  SUBCASE("the number is a later process's") {
    change_holder(lease, "\"start_ticks\": ", "\"start_ticks\": 1");
    CHECK(Claim::take(submission, kLong));
  }
  SUBCASE("on another machine") {
    change_holder(lease, own, cat("\"pid\": ", child));
    change_holder(lease, "\"boot_id\": \"", "\"boot_id\": \"x");
    CHECK_FALSE(Claim::take(submission, kLong));
  }
  SUBCASE("in another container") {
    change_holder(lease, own, cat("\"pid\": ", child));
    change_holder(lease, "\"pid_namespace\": ", "\"pid_namespace\": 1");
    CHECK_FALSE(Claim::take(submission, kLong));
  }
  SUBCASE("the clock was set back by more than the lease") {
    age(lease, -2000);
    CHECK(Claim::take(submission, kLong));
  }
}

TEST_CASE("a lease that cannot be read is over when it is older than any lasts") {
  Store store;
  const StoredSubmission submission = store.add("ada", "1");
  auto holder = Claim::take(submission, kLong);
  const fs::path lease = lease_of(submission, 1);
  const fs::path work = lease.parent_path() / "work";
  fs::path sign = lease;
  SUBCASE("it is empty") { write_file_atomically(lease, ""); }
  SUBCASE("it is gone") {
    fs::remove(lease);
    sign = work;
  }
  CHECK_THROWS_AS(Claim::take(submission, kLong), Error);
  age(sign, 86000);
  CHECK_THROWS_AS(Claim::take(submission, kLong), Error);
  age(sign, 1000);
  CHECK(Claim::take(submission, kLong));
  CHECK_FALSE(holder->held());
}

TEST_CASE("the holder renews its lease") {
  Store store;
  const StoredSubmission submission = store.add("ada", "1");
  const auto claim = Claim::take(submission, std::chrono::seconds(1));
  const fs::path lease = lease_of(submission, 1);
  age(lease, 2000);
  const auto before = fs::last_write_time(lease);
  for (int i = 0; i < 1000 && fs::last_write_time(lease) == before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(fs::last_write_time(lease) > before + std::chrono::seconds(1000));
}

TEST_CASE("one of many threads gets a claim") {
  Store store;
  const StoredSubmission submission = store.add("ada", "1");
  std::atomic<bool> go = false;
  std::atomic<int> got = 0;
  std::vector<std::unique_ptr<Claim>> claims(8);
  std::vector<std::thread> threads;
  for (auto& claim : claims) {
    threads.emplace_back([&] {
      while (!go) continue;
      if (auto taken = Claim::take(submission, kLong)) {
        claim = std::make_unique<Claim>(std::move(*taken));
        ++got;
      }
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(got == 1);
}

TEST_CASE("many that add at once have a number each, and the same is there once") {
  Store store;
  const fs::path same = store.folder.path() / "same.py";
  write_file_atomically(same, "same");
  std::vector<std::thread> threads;
  std::atomic<bool> go = false;
  for (int i = 0; i < 8; ++i) {
    const fs::path own = store.folder.path() / cat("own", i, ".py");
    write_file_atomically(own, cat(i));
    threads.emplace_back([&, own, i] {
      while (!go) continue;
      store.results.add({same, "ada", "softmax", 100}, {});
      store.results.add({own, cat("run", i), "softmax", 100}, {});
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  const auto found = store.results.submissions([](const Error& error) { FAIL(error.what()); });
  CHECK(found.size() == 9);
  CHECK(found.back().identity.number == 9);
}

TEST_CASE("the number of a lost submission is given to no other") {
  Store store;
  const auto add = [&](const char* run, const std::vector<SubmissionIdentity>& present, int after) {
    const fs::path file = store.folder.path() / "submission.py";
    write_file_atomically(file, run);
    ResultsDirectory::HandIn hand_in{file, run, "softmax", 1 << 20};
    hand_in.after = after;
    return store.results.add(hand_in, present);
  };
  for (const char* run : {"ada", "ben", "cyd"}) store.add(run, "1");
  const auto all = store.results.submissions([](const Error&) {});
  fs::remove_all(all[1].folder);
  CHECK(add("dan", {}, 0) == 4);
  CHECK(add("cyd", {}, 0) == 5);  // other files than before
  CHECK(add("cyd", {}, 0) == 5);
  fs::remove_all(store.folder.path() / "results/submissions/5");
  CHECK(add("eve", {all[0].identity, all[2].identity}, 5) == 6);
}

TEST_CASE("a folder of a high number that somebody put there keeps nobody from handing in") {
  Store store;
  const fs::path submissions = store.folder.path() / "results/submissions";
  CHECK(store.add("ada", "1").identity.number == 1);
  fs::create_directory(submissions / "1073741822");  // looked at one by one, they would take hours
  CHECK(store.add("ben", "2").identity.number == 1073741823);
  CHECK(store.add("cyd", "3").identity.number == kMostNumber);
  CHECK_THROWS_WITH_AS(store.add("dan", "4"), doctest::Contains("no number is left"), Error);
  fs::create_directory(submissions / "2147483647");
  CHECK(numbered(submissions).back() == kMostNumber);
}

TEST_CASE("a file system that knows no flags of rename, as NFS, is as good") {
  const pid_t child = ::fork();
  if (child == 0) {
    SyscallFilter nfs(SyscallFilter::Otherwise::allow);
    for (const std::uint64_t flags : {RENAME_NOREPLACE, RENAME_EXCHANGE}) {
      nfs.refuse("renameat2", {4, flags, flags}, EINVAL);
    }
    nfs.load();
    int code = 0;
    try {
      Store store;
      const auto expect = [&](bool holds) { code += holds ? 0 : 1; };
      const fs::path& results = store.results.path();
      StoredSubmission submission = store.add("ada", "1");
      expect(fs::exists(results / "store.json"));
      expect(find_run(results, "ada").has_value());
      expect(!write_run(results, {"ada", "ben", utc_now()}));  // which replaces nothing
      expect(find_run(results, "ada")->owner.empty());
      expect(store.add("ben", "2").identity.number == 2);
      auto claim = Claim::take(submission, kLong);
      expect(claim.has_value() && !Claim::take(submission, kLong));
      expect(claim->commit(submission, some_evaluation("a")) == 1);
      for (const char* folder : {"", "runs", "submissions", "submissions/1/claims"}) {
        for (const auto& item : fs::directory_iterator(results / folder)) {
          expect(!is_unfinished(item.path()));
        }
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      code = 100;
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("what killed processes left unfinished is swept, not what others are at") {
  const TempDir folder;
  const UnfinishedFolder own(folder.path());
  ProcessIdentity process = this_process();
  process.start_ticks += 1;
  const fs::path dead = folder.path() / cat(".new-", mark_of(process), "-1");
  process.boot_id[0] = process.boot_id[0] == 'a' ? 'b' : 'a';
  const fs::path elsewhere = folder.path() / cat(".new-", mark_of(process), "-1");
  const fs::path unknown = folder.path() / ".new-0123456789abcdef";  // of version 1 of the layout
  const fs::path old = folder.path() / ".new-fedcba9876543210";
  for (const fs::path& made : {dead, elsewhere, unknown, old}) fs::create_directory(made);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  sweep_unfinished(folder.path());
  CHECK(fs::exists(own.path()));
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(elsewhere));
  CHECK(fs::exists(unknown));
  CHECK_FALSE(fs::exists(old));
}

TEST_CASE("a judge that begins removes what a killed one wrote in the results directory") {
  Store store;
  const StoredSubmission submission = store.add("ada", "1");
  const fs::path results = store.results.path();
  ProcessIdentity process = this_process();
  process.start_ticks += 1;
  const std::string name = cat(".new-", mark_of(process), "-x1Y2z3");
  for (const fs::path& folder : {results, results / "runs", results / "tokens",
                                 results / "submissions", submission.folder / "claims"}) {
    fs::create_directories(folder);
    write_new_file(folder / name, "half");
  }
  ResultsDirectory::make(results);
  for (const auto& left : fs::recursive_directory_iterator(results)) {
    CHECK_MESSAGE(left.path().filename() != name, left.path());
  }
}

TEST_CASE("every field of lease.json refuses every wrong kind, and names itself") {
  Store store;
  StoredSubmission submission = store.add("ada", "1");
  Claim::take(submission, kLong)->commit(submission, some_evaluation("first"));
  const fs::path file = lease_of(submission, 1);
  const int tried = json_faults::try_every_fault(parse_json(read_file(file), "right", Fault::bug),
                                                 lease_json_format().schema,
                                                 [&](const std::string& faulty) {
                                                   write_file_atomically(file, faulty);
                                                   read_lease(file.parent_path());
                                                 },
                                                 {.file = file.string()});
  CHECK(tried > 50);
}

TEST_CASE("how far an evaluation is can be read while its judge lives") {
  using Step = RunningEvaluation::Step;
  Store store;
  StoredSubmission submission = store.add("ada", "1");
  CHECK_FALSE(read_running(submission.folder));
  {
    auto claim = Claim::take(submission, kLong);
    CHECK_FALSE(read_running(submission.folder));  // it says nothing yet
    claim->tell({.updated = utc_now()});
    CHECK(read_running(submission.folder)->ahead == 0);
    const RunningEvaluation told = {Step::replaying, {}, "round 2 of 6", "64x48", 2, 3, 0.25,
                                    utc_now()};
    claim->tell(told);
    const auto read = read_running(submission.folder);
    REQUIRE(read);
    CHECK(read->step == Step::replaying);
    CHECK(read->doing == "round 2 of 6");
    CHECK(read->shape == "64x48");
    CHECK(read->shape_number == 2);
    CHECK(read->shapes == 3);
    CHECK(read->done == 0.25);
    CHECK_FALSE(read->ahead);

    const fs::path lease = lease_of(submission, 1);
    const std::string right = read_file(lease);
    change_holder(lease, "\"start_ticks\": ", "\"start_ticks\": 1");
    CHECK_FALSE(read_running(submission.folder));  // another process had it, which ended
    write_file_atomically(lease, right);
    age(lease, 1001);
    CHECK_FALSE(read_running(submission.folder));
    write_file_atomically(lease, right);
    CHECK(read_running(submission.folder));
    write_file_atomically(lease.parent_path() / "running.json", "{");
    CHECK_FALSE(read_running(submission.folder));
    CHECK(claim->commit(submission, some_evaluation("1")));
    CHECK_FALSE(fs::exists(lease.parent_path() / "running.json"));
  }
  {
    const auto claim = Claim::take(submission, kLong);
    claim->tell({.updated = utc_now()});
  }
  CHECK_FALSE(fs::exists(submission.folder / "claims" / "2" / "running.json"));  // given up
}

TEST_CASE("every field of running.json refuses every wrong kind, and names itself") {
  const TempDir folder;
  write_running(folder.path(),
                {RunningEvaluation::Step::replaying, {}, "checking", "s", 1, 2, 0.5, utc_now()});
  const fs::path file = folder.path() / "running.json";
  const int tried = json_faults::try_every_fault(
      parse_json(read_file(file), "right", Fault::bug), json_format(running_table()).schema,
      [&](const std::string& faulty) {
        const Json json = parse_json(faulty, file.string(), Fault::malformed);
        running_table().read(JsonCursor(json, file.string(), Fault::malformed));
      },
      {.file = file.string()});
  CHECK(tried > 30);
}
