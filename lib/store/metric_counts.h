// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "error.h"
#include "json_fields.h"

namespace kjudge {

// What one visitor of a profile's page did, each metric once.
struct MetricSights {
  std::vector<std::string> opened, rested;
};
// Fault::malformed with field, for what is no such object or names no metric.
MetricSights metric_sights_from_json(const std::string& text, const std::string& where);

struct MetricCount {
  std::string metric;
  std::int64_t opened = 0, rested = 0;
  bool operator==(const MetricCount&) const = default;
};
JsonFormat metric_counts_json_format();

// How often the visitors of a contest opened a metric or rested on it, and nothing about who did:
// kept in a file, for the organizer. Any thread may count.
class MetricCounts {
 public:
  // Goes on from what `file` has; makes it where it is not there. Fault::host, Fault::malformed.
  MetricCounts(std::filesystem::path file, std::function<void(const Error&)> report);
  ~MetricCounts();  // writes
  MetricCounts(const MetricCounts&) = delete;
  MetricCounts& operator=(const MetricCounts&) = delete;

  // Counts those that are among `known`: anybody may say that anything was looked at. Writes the
  // file if that was not done for ten seconds; what fails goes to `report`.
  void add(const MetricSights& sights, const std::set<std::string>& known);

 private:
  void write();

  const std::filesystem::path file_;
  const std::function<void(const Error&)> report_;
  std::mutex mutex_;
  std::map<std::string, MetricCount> counts_;
  std::chrono::steady_clock::time_point written_;
  bool changed_ = false;
};

// Those of a file of MetricCounts, what was opened most first. Faults as read_file;
// Fault::malformed.
std::vector<MetricCount> read_metric_counts(const std::filesystem::path& file);
std::string metric_counts_to_json(std::vector<MetricCount> counts);

}  // namespace kjudge
