// SPDX-License-Identifier: Apache-2.0
#include "store/identity.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "error.h"
#include "file.h"
#include "file_names.h"
#include "json_faults.h"
#include "store/results.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

struct Store {
  TempDir folder;
  fs::path path = ResultsDirectory::make(folder.path() / "results").path();
};

const auto refuse_lines = [](const Error& error) { FAIL(error.what()); };

}  // namespace

TEST_CASE("a token is known by its hash alone, and whose it is") {
  const Store store;
  const std::string token = issue_token(store.path, "Ada");
  CHECK(token.size() == 68);
  CHECK(token.starts_with("kjt_"));
  CHECK(issue_token(store.path, "Grace") != token);
  TokenOwners owners(store.path, refuse_lines);
  CHECK(owners.find(token) == "Ada");
  CHECK_FALSE(owners.find(""));
  CHECK_FALSE(owners.find(token + "0"));
  CHECK_FALSE(owners.find(token.substr(0, 67)));
  for (const auto& item : fs::recursive_directory_iterator(store.path)) {
    if (item.is_regular_file()) {
      CHECK(read_file(item.path()).find(token.substr(4)) == std::string::npos);
    }
  }
  const auto listed = read_tokens(store.path, refuse_lines);
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].name == "Ada");
  CHECK(listed[1].name == "Grace");
}

TEST_CASE("a revoked token is good for nothing at once, and its name gets another") {
  const Store store;
  TokenOwners owners(store.path, refuse_lines);
  CHECK_FALSE(owners.find("kjt_"));
  for (int i = 0; i < 5; ++i) {
    const std::string token = issue_token(store.path, "Ada");
    CHECK(owners.find(token) == "Ada");
    CHECK_THROWS_WITH_AS(issue_token(store.path, "ada"),
                         "Ada has a token; revoke it before adding another", Error);
    revoke_token(store.path, "ADA");
    CHECK_FALSE(owners.find(token));
    CHECK_THROWS_AS(revoke_token(store.path, "Ada"), Error);
  }
  CHECK(read_tokens(store.path, refuse_lines).size() == 1);
}

TEST_CASE("tokens are read again when they change, not before") {
  const Store store;
  const std::string token = issue_token(store.path, "Ada");
  const fs::path folder = store.path / "tokens";
  const fs::path file = fs::directory_iterator(folder)->path();
  // Old enough to rely on.
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(folder, old);
  TokenOwners owners(store.path, refuse_lines);
  CHECK(owners.find(token) == "Ada");
  std::ofstream(file) << "nonsense";  // in place, which no writer of ours does
  CHECK(owners.find(token) == "Ada");
  fs::last_write_time(folder, old + std::chrono::minutes(1));
  std::string said;
  TokenOwners others(store.path, [&](const Error& error) { said = error.what(); });
  CHECK_FALSE(others.find(token));
  CHECK(said.find(file.string()) != std::string::npos);
}

TEST_CASE("a token that cannot be read for a moment is not taken for revoked") {
  const Store store;
  const std::string token = issue_token(store.path, "Ada");
  // Old enough to rely on.
  fs::last_write_time(store.path / "tokens",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  int said = 0;
  TokenOwners owners(store.path, [&](const Error&) { ++said; });
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK_THROWS_WITH_AS(owners.find(token), doctest::Contains("not all tokens can be read now"),
                       Error);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(said == 1);
  CHECK(owners.find(token) == "Ada");
  CHECK_FALSE(owners.find(token + "0"));
  CHECK(said == 1);
}

TEST_CASE("every field of tokens and runs refuses every wrong kind, and names itself") {
  const Store store;
  issue_token(store.path, "Ada");
  const fs::path token = fs::directory_iterator(store.path / "tokens")->path();
  revoke_token(store.path, "Ada");
  claim_run(store.path, "r", "Ada");
  const fs::path run = run_file(store.path, "r");
  int tried = json_faults::try_every_fault(
      parse_json(read_file(token), "right", Fault::bug), token_json_format().schema,
      [&](const std::string& faulty) {
        write_file_atomically(token, faulty);
        read_tokens(store.path, [](const Error& error) { throw error; });
      },
      {.file = token.string()});
  CHECK(tried > 30);
  tried = json_faults::try_every_fault(parse_json(read_file(run), "right", Fault::bug),
                                       run_json_format().schema,
                                       [&](const std::string& faulty) {
                                         write_file_atomically(run, faulty);
                                         find_run(store.path, "R");
                                       },
                                       {.file = run.string()});
  CHECK(tried > 25);
}

TEST_CASE("files that are not to be kept go, and what others have stays") {
  const TempDir folder;
  auto results = ResultsDirectory::make(folder.path() / "results");
  const auto add = [&](const char* text, const char* run, bool keep) {
    write_file_atomically(folder.path() / "submission.py", text);
    ResultsDirectory::HandIn hand_in{folder.path() / "submission.py", run, "softmax", 1000};
    hand_in.keep = keep;
    return results.submission(results.add(hand_in, {}));
  };
  const auto blobs = [&] {
    int count = 0;
    for (const auto& item : fs::recursive_directory_iterator(results.path() / "blobs")) {
      count += item.is_regular_file();
    }
    return count;
  };
  const StoredSubmission kept = add("one", "a", true), same = add("one", "b", false);
  StoredSubmission alone = add("two", "c", false);
  CHECK(blobs() == 2);
  CHECK_FALSE(has_files_to_remove(alone));  // it has no verdict yet
  fs::create_directories(alone.folder / "evaluations/1");
  alone.evaluations = {1};
  write_file_atomically(alone.folder / "evaluations/1/bundle.kjb", "recording");
  CHECK(has_files_to_remove(alone));
  for (int time = 0; time < 2; ++time) remove_files(results, alone);
  CHECK_FALSE(has_files_to_remove(alone));
  CHECK_FALSE(fs::exists(alone.folder / "files"));
  CHECK_FALSE(fs::exists(alone.folder / "evaluations/1/bundle.kjb"));
  CHECK(blobs() == 1);
  remove_files(results, same);
  CHECK(blobs() == 1);
  CHECK(read_file(kept.folder / "files/submission.py") == "one");
}

TEST_CASE("a run belongs to whoever is first, in any case of its letters") {
  const Store store;
  CHECK_FALSE(find_run(store.path, "My Team"));
  CHECK(claim_run(store.path, "My Team", "Ada") == "My Team");
  CHECK(claim_run(store.path, "my TEAM", "ada") == "My Team");
  CHECK_THROWS_WITH_AS(claim_run(store.path, "MY team", "Grace"),
                       "the run My Team belongs to somebody else; choose another name", Error);
  CHECK(claim_run(store.path, "my team", "") == "My Team");  // the organizer may
  CHECK(find_run(store.path, "MY TEAM")->owner == "Ada");
  CHECK(claim_run(store.path, "baseline", "") == "baseline");
  CHECK_THROWS_AS(claim_run(store.path, "Baseline", "Ada"), Error);
}

TEST_CASE("of many that claim a run at once one has it") {
  const Store store;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    std::vector<int> got(8);
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        try {
          claim_run(store.path, cat("run ", round), cat("owner ", i));
          got[static_cast<std::size_t>(i)] = 1;
        } catch (const Error&) {
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(std::count(got.begin(), got.end(), 1) == 1);
    const std::string owner = find_run(store.path, cat("run ", round))->owner;
    CHECK(got.at(static_cast<std::size_t>(std::stoi(owner.substr(6)))) == 1);
  }
}

TEST_CASE("names of runs and people") {
  for (const char* good : {"a", "My Team 2", "\u05d0\u05d1\u05d2", "\u00e9", "a\"<b>'"}) {
    CHECK(name_rule(good) == "");
  }
  CHECK(name_rule(std::string(100, 'x')) == "");
  for (const std::string& bad :
       {std::string(), std::string(101, 'x'), std::string(" a"), std::string("a "),
        std::string("a/b"), std::string("a\nb"), std::string("e\u0301"), std::string("\u202egnp"),
        std::string("\xff"), std::string("a\0b", 3), std::string("\u212b")}) {
    CHECK(name_rule(bad) != "");
  }
  CHECK(folded_name("My TEAM") == "my team");
  CHECK(folded_name("\u00c9\u0130x\U00010400") == folded_name("\u00e9\u0130X\U00010428"));
  CHECK(folded_name("\u03a3\u03a3") == folded_name("\u03c3\u03c2"));  // sigma at the end
  CHECK(folded_name("stra\u00dfe") != folded_name("strasse"));
  CHECK(folded_name("A\xff") == "a\xff");
  for (const char* kept : {"a", "\u05d0", "\u20ac", "\U0001f600"}) CHECK(folded_name(kept) == kept);
}

TEST_CASE("no name passes for another by what does not print, or by its spaces") {
  for (const char* hidden :
       {"\u3164",     "\u115f", "\u1160", "\u034f", "\ufe0f",     "\u180b",     "\u17b4",
        "\U0001d173", "\u2800", "\uffa0", "\u0378", "\ue000",     "\uffff",     "\u200d",
        "\u00ad",     "\u2028", "\u0085", "\ufff9", "\U000f0000", "\U0001d159", "\U000e0100"}) {
    CAPTURE(hidden);
    CHECK(name_rule(cat("ada", hidden)) == "is not UTF-8 or holds characters that do not print");
    CHECK(name_rule(hidden) != "");
    CHECK(visible_rule(cat("a", hidden, "da")) != "");
  }
  for (const char* space : {" ", "\u00a0", "\u3000", "\u2003", "\u1680"}) {
    CAPTURE(space);
    CHECK(name_rule(space) == "begins or ends with a space");
    CHECK(name_rule(cat("ada", space)) == "begins or ends with a space");
    CHECK(name_rule(cat(space, "ada")) == "begins or ends with a space");
    CHECK(name_rule(cat("ada", space, " b")) != "");
    CHECK((name_rule(cat("ada", space, "b")) == "") == (std::string(space) == " "));
  }
  for (const char* good : {"\u0600 1", "\U0001f600", "\u0e01", "\u4e00", "\uac00", "\U0001f1e6"}) {
    CHECK(name_rule(good) == "");
  }
}

TEST_CASE("what folders bring has a run whose name prints too") {
  const TempDir folder;
  auto results = ResultsDirectory::make(folder.path() / "results");
  for (const char* run : {"ada\u3164", "ada\u00a0", "ada\ufe0f"}) {
    write_file_atomically(folder.path() / "submission.py", "pass\n");
    CHECK_THROWS_WITH_AS(results.add({folder.path() / "submission.py", run, "softmax", 1000}, {}),
                         doctest::Contains("the name of its run"), Error);
  }
  CHECK(results.add({folder.path() / "submission.py", "ada  2", "softmax", 1000}, {}) == 1);
}

TEST_CASE(
    "a submission with an id is there once; with other files, or for something else, it is "
    "refused") {
  const TempDir folder;
  auto results = ResultsDirectory::make(folder.path() / "results");
  const auto add = [&](const char* text, const char* id, const char* run, const char* owner,
                       const std::vector<SubmissionIdentity>& present = {}) {
    write_file_atomically(folder.path() / "submission.py", text);
    return results.add({folder.path() / "submission.py", run, "softmax", 1000, id, owner, "me"},
                       present);
  };
  CHECK(add("one", "id-1", "r", "ada") == 1);
  CHECK(add("one", "id-1", "r", "ada") == 1);
  CHECK_THROWS_AS(add("two", "id-1", "r", "ada"), Error);
  CHECK_THROWS_AS(add("one", "id-1", "s", "ada"), Error);
  CHECK_THROWS_AS(add("two", "id-1", "r", "ada", {results.submission(1).identity}), Error);
  CHECK(add("one", "id-2", "R", "ada") == 2);  // the same files, and another submission
  CHECK(add("one", "id-1", "r", "ada", {results.submission(1).identity}) == 1);
  CHECK_THROWS_AS(add("one", "id-3", "r", "grace"), Error);
  CHECK(results.submissions(refuse_lines).size() == 2);
  const SubmissionIdentity second = results.submission(2).identity;
  CHECK(second.run == "r");
  CHECK(second.owner == "ada");
  CHECK(second.contact == "me");
  CHECK(second.id == "id-2");
  // The organizer's folder finds what it added, whatever tokens handed in.
  CHECK(add("one", "", "r", "") == 1);
}
