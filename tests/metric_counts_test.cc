// SPDX-License-Identifier: Apache-2.0
#include "store/metric_counts.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "error.h"
#include "file.h"
#include "json_faults.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

struct Counted {
  TempDir folder;
  fs::path file = folder.path() / "counts.json";
  std::vector<std::string> told;

  void add(const MetricSights& sights,
           const std::set<std::string>& known = {"a", "b", "b.sum", "c"}) {
    MetricCounts counts(file, [this](const Error& error) { told.push_back(error.what()); });
    counts.add(sights, known);
  }
};

}  // namespace

TEST_CASE("what is opened and rested on is counted, on and on, the most opened first") {
  Counted counted;
  counted.add({{"a", "b.sum", "b.sum"}, {"c"}});
  counted.add({{"b.sum"}, {"b.sum"}});
  CHECK(read_metric_counts(counted.file) ==
        std::vector<MetricCount>{{"b.sum", 2, 1}, {"a", 1, 0}, {"c", 0, 1}});
  CHECK(counted.told.empty());
}

TEST_CASE("names of metrics are bounded, in length and in number") {
  CHECK_THROWS_AS(metric_sights_from_json(R"({"opened": ["a b"]})", "it"), Error);
  CHECK_THROWS_AS(metric_sights_from_json(R"({"seen": []})", "it"), Error);
  CHECK_THROWS_AS(
      metric_sights_from_json(cat("{\"rested\": [\"", std::string(151, 'a'), "\"]}"), "it"), Error);
  CHECK(metric_sights_from_json(R"({"rested": ["gpu__time_duration.sum"]})", "it").rested ==
        std::vector<std::string>{"gpu__time_duration.sum"});
  Counted counted;
  MetricSights many;
  for (int i = 0; i < 10'001; ++i) many.opened.push_back(cat("made_up_", i));
  counted.add(many, {many.opened.begin(), many.opened.end()});
  CHECK(read_metric_counts(counted.file).size() == 10'000);
}

TEST_CASE("made-up names of metrics do not count, and make room for those of profiles") {
  Counted counted;
  MetricSights many;
  for (int i = 0; i < 10'000; ++i) many.opened.push_back(cat("made_up_", i));
  counted.add(many);
  CHECK(read_metric_counts(counted.file).empty());
  counted.add(many, {many.opened.begin(), many.opened.end()});  // as a file may have them
  counted.add({{"a", "made_up_1"}, {}});
  CHECK(read_metric_counts(counted.file) == std::vector<MetricCount>{{"a", 1, 0}});
}

TEST_CASE("where counts cannot be written is said at the start; later it stops nobody") {
  const TempDir folder;
  const fs::path place = folder.path() / "place";
  std::vector<std::string> told;
  const auto report = [&](const Error& error) { told.push_back(error.what()); };
  CHECK_THROWS_AS(MetricCounts(place / "counts.json", report), Error);
  fs::create_directory(place);
  CHECK_THROWS_AS(MetricCounts(place, report), Error);
  {
    MetricCounts counts(place / "counts.json", report);
    fs::remove_all(place);
    counts.add({{"a"}, {}}, {"a"});
  }
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("counts.json") != std::string::npos);
}

TEST_CASE("every field of metric counts refuses every wrong kind, and names itself") {
  Counted counted;
  counted.add({{"a"}, {"b"}});
  const auto tried = json_faults::try_every_fault(
      parse_json(read_file(counted.file), "right", Fault::bug), metric_counts_json_format().schema,
      [&](const std::string& faulty) {
        write_file_atomically(counted.file, faulty);
        read_metric_counts(counted.file);
      },
      {.file = counted.file.string()});
  CHECK(tried > 10);
}
