// SPDX-License-Identifier: Apache-2.0
#include "store/records.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "challenge/variant_request.h"
#include "error.h"
#include "file.h"
#include "json_faults.h"
#include "store/judgements.h"
#include "store/rejudgement.h"
#include "store/submission_notes.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

struct Directory {
  TempDir folder;
  ResultsDirectory results = ResultsDirectory::make(folder.path());
};

Bar a_bar(const std::string& name) {
  Bar bar;
  bar.name = name;
  bar.variant = parse_request("softmax:float32");
  bar.speedup = 2;
  bar.times_us = {{"4096x1000", 1.5}};
  bar.source = "a paper";
  bar.date = "2026";
  bar.basis = Bar::Basis::measured;
  bar.made = utc_now();
  return bar;
}

Records<Bar> bars_in(const ResultsDirectory& results) {
  return read_records(results, kBarRecord, bar_table(),
                      [](const Error& error) { FAIL(error.what()); });
}

template <class T>
void try_faults(const FieldTable<T>& table, const T& right) {
  const TempDir folder;
  const fs::path path = folder.path() / "record.json";
  const int tried =
      json_faults::try_every_fault(Json{table.write(right)}, json_format(table).schema,
                                   [&](const std::string& faulty) {
                                     write_file_atomically(path, faulty);
                                     read_record(table, path);
                                   },
                                   {.file = path.string()});
  CHECK(tried > 10);
}

}  // namespace

TEST_CASE("a record that could not be read back is not written") {
  for (const char* text : {"a\nb", "a\u202eb", "\u009b"}) {
    const auto message =
        json_faults::message_of([&] { record_json(bar_table(), a_bar(text), kBarRecord); });
    CHECK_MESSAGE(message.starts_with("the bar: name: expected one line of visible text"), message);
    Rejudgement set;
    set.challenge = "softmax";
    set.reason = text;
    set.made = utc_now();
    set.evaluations = {{1, 1, "id", "run"}};
    const auto said =
        json_faults::message_of([&] { record_json(rejudgement_table(), set, kRejudgementRecord); });
    CHECK_MESSAGE(said.starts_with("the rejudgement: reason: expected one line of"), said);
  }
  CHECK(record_json(bar_table(), a_bar("x"), kBarRecord) == Json{bar_table().write(a_bar("x"))});
}

TEST_CASE("a record is read back as it was written, and taken back by a later one") {
  const Directory directory;
  CHECK(bars_in(directory.results).empty());
  CHECK(add_record(directory.results, kBarRecord, Json{bar_table().write(a_bar("x"))}) == 1);
  CHECK(add_record(directory.results, kBarRecord, Json{bar_table().write(a_bar("y"))}) == 2);
  Bar removal;
  removal.made = utc_now();
  removal.takes_back = 1;
  CHECK(add_record(directory.results, kBarRecord, Json{bar_table().write(removal)}) == 3);
  const auto all = bars_in(directory.results);
  REQUIRE(all.size() == 3);
  CHECK(all[0].second.name == "x");
  CHECK(all[0].second.variant == parse_request("softmax:float32"));
  CHECK(all[0].second.times_us == a_bar("x").times_us);
  CHECK(all[0].second.basis == Bar::Basis::measured);
  const auto left = standing(all);
  REQUIRE(left.size() == 1);
  CHECK(left[0].first == 2);
  require_record(left, 2, "bar");
  CHECK_THROWS_AS(require_record(left, 1, "bar"), Error);
}

TEST_CASE("several processes record at the same time, some of them killed: each record is whole") {
  const Directory directory;
  constexpr int kProcesses = 8, kEach = 12;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int k = 0; k < kEach; ++k) {
        add_record(directory.results, kBarRecord, Json{bar_table().write(a_bar(cat(i, "-", k)))},
                   [&](const fs::path&) {
                     // In the middle of its last.
                     if (i % 2 == 1 && k == kEach - 1) ::kill(::getpid(), SIGKILL);
                   });
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
  }
  const auto all = bars_in(directory.results);
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].first == static_cast<int>(i) + 1);
    names.insert(all[i].second.name);
  }
  CHECK(all.size() == kProcesses * kEach - kProcesses / 2);
  CHECK(names.size() == all.size());
}

TEST_CASE("every field of every record refuses every wrong kind, and names itself") {
  Bar bar = a_bar("x");
  bar.takes_back = 1;
  try_faults(bar_table(), bar);
  Invalidation invalidation;
  invalidation.selection = {3,
                            "id",
                            "run",
                            "softmax",
                            1,
                            1,
                            "node",
                            "h200",
                            "2026-11-30T12:00:00Z",
                            "2026-11-30T13:00:00Z"};
  invalidation.reason = "why";
  invalidation.made = utc_now();
  invalidation.takes_back = 4;
  try_faults(invalidation_table(), invalidation);
  try_faults(
      play_off_table(),
      PlayOff{{1, 2, "id", "run"}, {{3, 4, "other", "eve"}}, utc_now(), {{5, 6, "absent", "fay"}}});
  try_faults(
      rejudgement_table(),
      Rejudgement{"softmax", 1, invalidation.selection, "why", utc_now(), {{1, 2, "id", "run"}}});
}

TEST_CASE("what an invalidation selects") {
  const Selectable one = {
      3, "ada", "id-3", "softmax", 2, 1, "node1", "sm_90", "2026-11-30T12:00:00Z", "NVIDIA H200"};
  CHECK(selects({}, one));
  const auto with = [](const std::function<void(Selection&)>& change) {
    Selection selection;
    change(selection);
    return selection;
  };
  using S = Selection;
  for (const Selection& yes :
       {with([](S& s) { s.submission = 3; }), with([](S& s) { s.evaluation = "id-3"; }),
        with([](S& s) { s.run = "ADA"; }), with([](S& s) { s.challenge = "softmax"; }),
        with([](S& s) { s.challenge_version = 2; }), with([](S& s) { s.method = 1; }),
        with([](S& s) { s.node = "node1"; }), with([](S& s) { s.gpu = "h200"; }),
        with([](S& s) { s.gpu = "sm_90"; }), with([](S& s) { s.from = "2026-11-30T12:00:00Z"; }),
        with([](S& s) { s.to = "2026-11-30T12:00:00Z"; })}) {
    CHECK(selects(yes, one));
  }
  for (const Selection& no :
       {with([](S& s) { s.submission = 4; }), with([](S& s) { s.evaluation = "id-4"; }),
        with([](S& s) { s.run = "ad"; }), with([](S& s) { s.challenge = "soft"; }),
        with([](S& s) { s.challenge_version = 1; }), with([](S& s) { s.method = 2; }),
        with([](S& s) { s.node = "node"; }), with([](S& s) { s.gpu = "h100"; }),
        with([](S& s) { s.from = "2026-11-30T12:00:01Z"; }),
        with([](S& s) { s.to = "2026-11-30T11:59:59Z"; }),
        with([](S& s) { s.run = "ada", s.node = "node2"; })}) {
    CHECK(!selects(no, one));
  }
  CHECK(time_of("2026-11-30", DayEnd::first) == "2026-11-30T00:00:00Z");
  CHECK(time_of("2026-11-30", DayEnd::last) == "2026-11-30T23:59:59Z");
  CHECK(time_of("", DayEnd::last) == "");
  CHECK_THROWS_AS(time_of("30.11.2026", DayEnd::last), Error);
}

TEST_CASE("variants as people write them") {
  for (const char* text : {"softmax", "softmax@2", "softmax:bfloat16", "softmax::h200",
                           "softmax@12:float32:h100-pcie:4096x1024", "softmax:::4096x1024"}) {
    CHECK(request_text(parse_request(text)) == text);
  }
  CHECK(parse_request("softmax:::").shape == "");
  for (const char* wrong :
       {"", ":float32", "@1", "softmax@", "softmax@0", "softmax@1x", "a:b:c:d:e"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_request(wrong), Error);
  }
  CHECK(device_word("NVIDIA H100 80GB HBM3") == "h100-80gb-hbm3");
  for (const char* yes :
       {"", "h100", "H100", "h100-80gb", "H100 80GB HBM3", "sm_90", "NVIDIA H100 80GB HBM3"}) {
    CAPTURE(yes);
    CHECK(names_device(yes, "sm_90", "NVIDIA H100 80GB HBM3"));
  }
  for (const char* no : {"h10", "h200", "80gb", "sm_9", "nvidia"}) {
    CAPTURE(no);
    CHECK(!names_device(no, "sm_90", "NVIDIA H100 80GB HBM3"));
  }
}

TEST_CASE("what a submission says of itself") {
  const TempDir folder;
  const auto notes_of = [&](const std::string& text, const char* name = "submission.py") {
    fs::remove(folder.path() / "submission.py");
    write_file_atomically(folder.path() / name, text);
    return read_submission_notes(folder.path());
  };
  CHECK(notes_of("") == SubmissionNotes{});
  CHECK(notes_of("x = 1\n  #  kjudge_label:  A model, 3 attempts \r\n# kjudge_license: MIT") ==
        SubmissionNotes{"A model, 3 attempts", "MIT"});
  CHECK(notes_of("# kjudge_label: first\n# kjudge_label: second\n").label == "first");
  CHECK(notes_of("text = 'kjudge_label: no'\nkjudge_label: no\n") == SubmissionNotes{});
  CHECK(notes_of("# kjudge_label: \x1b[31mred\n") == SubmissionNotes{});
  CHECK(notes_of("# kjudge_label: " + std::string(101, 'x') + "\n") == SubmissionNotes{});
  CHECK(notes_of(std::string(5000, '\n') + "# kjudge_label: late\n") == SubmissionNotes{});
  CHECK(notes_of("// kjudge_license: BSD-3-Clause\n", "submission.cu").license == "BSD-3-Clause");
}
