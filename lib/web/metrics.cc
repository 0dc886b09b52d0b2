// SPDX-License-Identifier: Apache-2.0
#include "web/metrics.h"

#include <cmath>
#include <utility>

#include "error.h"
#include "web/fragments.h"

namespace kjudge {
namespace {

using Word = std::pair<std::string_view, std::string_view>;

// "unit__counter.rollup.submetric", see "Metrics Structure" in NVIDIA's Kernel Profiling Guide.
constexpr Word kUnits[] = {
    {"dram", "device memory"},
    {"fbpa", "controllers of device memory"},
    {"gpc", "clusters of multiprocessors"},
    {"gpu", "the whole GPU"},
    {"gr", "the graphics and compute engine"},
    {"idc", "cache of indexed constants"},
    {"l1tex", "L1 cache and texture unit"},
    {"launch", "how the kernel was launched"},
    {"lts", "slices of the L2 cache"},
    {"ltc", "L2 cache"},
    {"sm", "streaming multiprocessors"},
    {"smsp", "quarters of a multiprocessor, each with a scheduler"},
    {"sys", "the system's interface"},
    {"device", "attribute of the device"},
    {"profiler", "how ncu itself went about it"},
};
constexpr Word kParts[] = {
    {"sum", "summed over all units"},
    {"avg", "average over the units"},
    {"min", "the unit with the least"},
    {"max", "the unit with the most"},
    {"ratio", "a ratio"},
    {"pct", "in percent"},
    {"per_second", "per second"},
    {"per_cycle_active", "per cycle in which the unit was active"},
    {"per_cycle_elapsed", "per cycle"},
    {"peak_sustained", "the most that can be sustained"},
    {"pct_of_peak_sustained_active", "percent of the most that can be sustained, while active"},
    {"pct_of_peak_sustained_elapsed",
     "percent of the most that can be sustained, over the whole time"},
};

template <std::size_t N>
std::string_view find_word(const Word (&words)[N], std::string_view key) {
  for (const auto& [word, meaning] : words) {
    if (word == key) return meaning;
  }
  return {};
}

// "1824" as "1,824".
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace

std::string explain_metric(std::string_view metric) {
  std::string text;
  const auto add = [&](std::string_view part) {
    if (!part.empty()) text += cat(text.empty() ? "" : "; ", part);
  };
  add(find_word(kUnits, metric.substr(0, metric.find("__"))));
  for (auto at = metric.find('.'); at != metric.npos;) {
    const auto end = metric.find('.', at + 1);
    add(find_word(kParts, metric.substr(at + 1, end == metric.npos ? end : end - at - 1)));
    at = end;
  }
  return text;
}

std::optional<double> metric_value(const Metric& metric) {
  if (const auto* whole = std::get_if<std::int64_t>(&metric.value.value))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&metric.value.value)) return *real;
  return std::nullopt;
}

std::string metric_text(const Metric& metric) {
  std::string text;
  if (const auto* whole = std::get_if<std::int64_t>(&metric.value.value)) {
    text = grouped(*whole);
  } else if (const auto* real = std::get_if<double>(&metric.value.value)) {
    const bool long_whole = std::abs(*real) >= 1e5 && std::abs(*real) < 1e15;
    text = long_whole ? grouped(std::llround(*real)) : number_text(*real, 5);
  } else if (const auto* words = std::get_if<std::string>(&metric.value.value)) {
    text = *words;
  }
  return metric.unit.empty() ? text : cat(text, " ", metric.unit);
}

}  // namespace kjudge
