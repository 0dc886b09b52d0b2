// SPDX-License-Identifier: Apache-2.0
#include "store/metric_counts.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "error.h"
#include "file.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenWrites = std::chrono::seconds(10);
// ncu knows about 3000.
constexpr std::size_t kMostMetrics = 10'000;
constexpr std::size_t kCountsBytes = std::size_t{4} << 20;

struct CountsFile {
  std::vector<MetricCount> metrics;
};

Kind<std::string> metric_name_kind() {
  return matching_kind("the name of a metric", "[A-Za-z0-9_.]{1,150}");
}

const FieldTable<CountsFile>& counts_table() {
  using M = MetricCount;
  const auto count = integer_kind<std::int64_t>(0, std::int64_t{1} << 53);
  static const FieldTable<CountsFile> table({
      format_field<CountsFile>("kjudge-metric-counts/1"),
      required("metrics", &CountsFile::metrics,
               list_kind(object_kind(FieldTable<M>({
                             required("metric", &M::metric, metric_name_kind(), "as ncu names it"),
                             required("opened", &M::opened, count,
                                      "visits of a profile's page in which its field was opened"),
                             required("rested", &M::rested, count,
                                      "those in which the pointer stayed on it for a second"),
                         })),
                         0, kMostMetrics),
               "what was opened most first"),
  });
  return table;
}

const FieldTable<MetricSights>& sights_table() {
  using S = MetricSights;
  static const FieldTable<S> table({
      optional("opened", &S::opened, list_kind(metric_name_kind(), 0, kMostMetrics), "their names"),
      optional("rested", &S::rested, list_kind(metric_name_kind(), 0, kMostMetrics), "their names"),
  });
  return table;
}

void write_counts(const fs::path& file, std::vector<MetricCount> counts) {
  write_file_atomically(file, metric_counts_to_json(std::move(counts)));
}

}  // namespace

JsonFormat metric_counts_json_format() { return json_format(counts_table()); }

MetricSights metric_sights_from_json(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where, Fault::malformed);
  return sights_table().read(JsonCursor(json, where, Fault::malformed));
}

std::vector<MetricCount> read_metric_counts(const fs::path& path) {
  const std::string file = path.string();
  const Json json = parse_json(read_file(path, kCountsBytes), file, Fault::malformed);
  return counts_table().read(JsonCursor(json, file, Fault::malformed)).metrics;
}

std::string metric_counts_to_json(std::vector<MetricCount> counts) {
  return print_json(Json{counts_table().write({std::move(counts)})});
}

MetricCounts::MetricCounts(fs::path file, std::function<void(const Error&)> report)
    : file_(std::move(file)), report_(std::move(report)), written_(Clock::now()) {
  if (!fs::exists(file_)) write_counts(file_, {});
  for (const MetricCount& one : read_metric_counts(file_)) counts_[one.metric] = one;
}

MetricCounts::~MetricCounts() { write(); }

void MetricCounts::add(const MetricSights& sights, const std::set<std::string>& known) {
  const std::lock_guard lock(mutex_);
  for (const auto& [names, count] : {std::tuple(&sights.opened, &MetricCount::opened),
                                     std::tuple(&sights.rested, &MetricCount::rested)}) {
    for (const std::string& name : std::set<std::string>(names->begin(), names->end())) {
      if (!known.contains(name)) continue;
      if (counts_.size() >= kMostMetrics && !counts_.contains(name)) {
        // Of a file that others wrote, or of profiles that are gone.
        std::erase_if(counts_, [&](const auto& one) { return !known.contains(one.first); });
        if (counts_.size() >= kMostMetrics) continue;
      }
      MetricCount& one = counts_[name];
      one.metric = name;
      one.*count += 1;
      changed_ = true;
    }
  }
  if (Clock::now() - written_ >= kBetweenWrites) write();
}

void MetricCounts::write() {
  if (!changed_) return;
  std::vector<MetricCount> counts;
  for (const auto& [name, one] : counts_) counts.push_back(one);
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return std::tie(b.opened, b.rested) < std::tie(a.opened, a.rested);
  });
  written_ = Clock::now();
  try {
    write_counts(file_, std::move(counts));
    changed_ = false;
  } catch (const Error& error) {
    report_(error);
  }
}

}  // namespace kjudge
