// SPDX-License-Identifier: Apache-2.0
#include "score/explain.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "error.h"
#include "score/score.h"

namespace kjudge {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string listed(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += formatted(" %.6f", value);
  return text;
}

std::string interval_text(const Interval& interval) {
  return formatted("  interval   [%.6f, %.6f]: ", interval.low, interval.high) +
         "smallest to largest of the rounds and of all together\n";
}

std::string arm_text(const char* who, double ns, const std::optional<TwoModes>& modes) {
  std::string text = formatted("  %-10s %.1f ns", who, ns);
  if (modes) {
    text += formatted("; two modes: %d replays around %.1f ns, %d around %.1f ns", modes->low_count,
                      modes->low_ns, modes->high_count, modes->high_ns);
  }
  return text + "\n";
}

std::string pairs_text(const RoundFacts& round, const std::string& regime) {
  std::string text;
  for (const Pair& pair : round.pairs) {
    if (pair.regime == regime) text += formatted(" %.6f", pair.ratio());
  }
  return text;
}

std::string_view source_of(FloorFrom from) {
  switch (from) {
    case FloorFrom::challenge:
      return "the challenge";
    case FloorFrom::rates:
      return "the shape's work and the challenge's rates";
    case FloorFrom::measured:
      return "the shape's work and measured rates";
  }
  return "nobody";
}

std::string shape_text(const ShapeFacts& shape, const ShapeScore& scored) {
  int pairs = 0, voids = 0;
  for (const RoundFacts& round : shape.rounds) {
    pairs += static_cast<int>(round.pairs.size());
    for (const Pair& pair : round.pairs) voids += pair.voids;
  }
  std::string text =
      cat("shape ", shape.name, ": ", pairs, pairs == 1 ? " pair in " : " pairs in ",
          shape.rounds.size(), shape.rounds.size() == 1 ? " round, " : " rounds, ",
          "each arm replayed ",
          shape.replays_per_arm == 1 ? "once" : cat(shape.replays_per_arm, " times"), " in a pair");
  if (voids > 0) {
    text += cat("; ", voids, voids == 1 ? " void pair was" : " void pairs were", " taken again");
  }
  text +=
      "\n  ratio of a pair: the median event time of the baseline's replays by that of the "
      "submission's\n";
  const bool several = scored.regimes.size() > 1;
  for (std::size_t r = 0; r < shape.rounds.size(); ++r) {
    for (const std::string& regime : scored.regimes) {
      text += cat("  round ", r + 1, several ? ", " + regime : "", ":",
                  pairs_text(shape.rounds[r], regime), "\n");
    }
  }
  for (std::size_t i = 0; i < scored.regimes.size(); ++i) {
    text +=
        formatted("  median of all ratios%s: %.6f\n",
                  several ? cat(", ", scored.regimes[i]).c_str() : "", scored.regime_medians[i]);
  }
  text += formatted("  speedup    %.6f: ", scored.speedup);
  text += several ? "the geometric mean of these medians\n" : "that median\n";
  text += cat("  rounds    ", listed(scored.rounds), ": the same of each round's ratios alone\n");
  text += interval_text(scored.interval);
  text += arm_text("baseline", scored.baseline_ns, scored.two_modes[0]);
  text += arm_text("submission", scored.submission_ns, scored.two_modes[1]);
  if (shape.floor_ns) {
    text += formatted("  floor      %.1f ns%s: %.1f %% of the submission's time", *shape.floor_ns,
                      shape.floor_from ? cat(", by ", source_of(*shape.floor_from)).c_str() : "",
                      100 * scored.speed_of_light.value_or(0));
    text += scored.below_floor ? ", which is below it: flagged, and counts\n" : "\n";
  }
  return text;
}

std::string device_text(const Evaluation& evaluation, const Score& scored) {
  std::string text;
  std::vector<double> speedups;
  for (const ShapeScore& shape : scored.shapes) {
    const auto facts =
        std::find_if(evaluation.shapes.begin(), evaluation.shapes.end(),
                     [&](const ShapeFacts& candidate) { return candidate.name == shape.name; });
    text += shape_text(*facts, shape);
    speedups.push_back(shape.speedup);
  }
  if (speedups.empty()) return text + cat("not ranked: ", scored.why_not, "\n");
  text += cat("score\n  speedups  ", listed(speedups), "\n");
  text += formatted("  score      %.6f: their geometric mean\n", scored.speedup);
  text += cat("  rounds    ", listed(scored.rounds),
              ": the geometric mean over the shapes of each round's\n");
  text += interval_text(scored.interval);
  if (!scored.ranked) text += cat("  not ranked: ", scored.why_not, "\n");
  return text;
}

}  // namespace

std::string explanation(const Evaluation& evaluation) {
  const Score scored = score(evaluation);
  std::string text = device_text(evaluation, scored);
  if (evaluation.others.empty()) return text;
  text = cat("on ", evaluation.device, ", whose score is the evaluation's\n", text);
  for (const OnDevice& other : evaluation.others) {
    const Evaluation there = evaluation_on(evaluation, other);
    text += cat("on ", other.device, "\n", device_text(there, score(there)));
  }
  if (scored.devices.empty()) return text;
  text += "devices\n";
  for (const DeviceScore& device : scored.devices) {
    text += formatted("  [%.6f, %.6f]: ", device.interval.low, device.interval.high) +
            device.device + "\n";
  }
  return text + (scored.devices_agree ? "  agree: some speedup lies in all these intervals\n"
                                      : "  disagree: no speedup lies in all these intervals\n");
}

}  // namespace kjudge
