// SPDX-License-Identifier: Apache-2.0
#include "judge/noise.h"

#include <algorithm>
#include <cmath>

#include "error.h"
#include "score/score.h"
#include "stats.h"

namespace kjudge {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Of the population that the values are a sample of; nullopt of fewer than two.
std::optional<double> variance(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum / static_cast<double>(values.size() - 1);
}

// What the variance of the means of rounds comes to, and how much of it that of their pairs
// explains, is the usual one-way analysis of variance.
struct Spread {
  std::vector<double> in_rounds, of_rounds;  // variances
  std::vector<double> pairs;                 // of each round
};

void add(Spread& spread, const ShapeFacts& shape) {
  std::vector<double> means;
  for (const RoundFacts& round : shape.rounds) {
    std::vector<double> ratios;
    for (const Pair& pair : round.pairs) ratios.push_back(std::log(pair.ratio()));
    if (ratios.empty()) continue;
    if (const auto within = variance(ratios)) spread.in_rounds.push_back(*within);
    spread.pairs.push_back(static_cast<double>(ratios.size()));
    means.push_back(mean(ratios));
  }
  if (const auto between = variance(means)) spread.of_rounds.push_back(*between);
}

Noise noise_of_shape(const std::vector<Evaluation>& evaluations, std::size_t index) {
  Noise noise;
  Spread spread;
  std::vector<double> times, errors, widths, held;
  for (const Evaluation& evaluation : evaluations) {
    const Score scored = score(evaluation);
    KJ_CHECK(index < scored.shapes.size());
    const ShapeScore& shape = scored.shapes[index];
    const auto facts =
        std::find_if(evaluation.shapes.begin(), evaluation.shapes.end(),
                     [&](const ShapeFacts& candidate) { return candidate.name == shape.name; });
    noise.shape = shape.name;
    noise.replays_per_arm = facts->replays_per_arm;
    times.push_back(shape.baseline_ns);
    errors.push_back(std::abs(shape.speedup - 1));
    widths.push_back(shape.interval.high - shape.interval.low);
    held.push_back(shape.interval.low <= 1 && 1 <= shape.interval.high ? 1 : 0);
    for (const RoundFacts& round : facts->rounds) {
      for (const Pair& pair : round.pairs) noise.voids += pair.voids;
    }
    add(spread, *facts);
  }
  noise.time_ns = median(times);
  noise.error_median = median(errors);
  noise.error_95 = quantile(errors, 0.95);
  noise.width = mean(widths);
  noise.holds_1 = mean(held);
  const double within = spread.in_rounds.empty() ? 0 : mean(spread.in_rounds);
  noise.within = std::sqrt(within);
  if (!spread.of_rounds.empty()) {
    const double explained = within / mean(spread.pairs);
    noise.between = std::sqrt(std::max(0.0, mean(spread.of_rounds) - explained));
  }
  return noise;
}

}  // namespace

std::vector<Noise> noise_of(const std::vector<Evaluation>& evaluations) {
  KJ_CHECK(!evaluations.empty());
  std::vector<Noise> noises;
  const std::size_t shapes = score(evaluations.front()).shapes.size();
  for (std::size_t s = 0; s < shapes; ++s) noises.push_back(noise_of_shape(evaluations, s));
  return noises;
}

}  // namespace kjudge
