// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "judge/profile.h"

namespace kjudge {

// What ncu's metric "sm__throughput.avg.pct_of_peak_sustained_elapsed" is, from the parts of its
// name: "streaming multiprocessors; average over them; percent of the most they could sustain,
// ...". Empty where no part is known.
std::string explain_metric(std::string_view metric);

// With its unit: "1,824 ns", "81.26 %", or ncu's text.
std::string metric_text(const Metric& metric);
// nullopt for text.
std::optional<double> metric_value(const Metric& metric);

}  // namespace kjudge
