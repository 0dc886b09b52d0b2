// SPDX-License-Identifier: Apache-2.0
// How often the interval of a shape's speedup holds the true value, over simulated evaluations
// whose rounds differ: bench_coverage [evaluations, default 20000]. Log ratios of pairs are noise
// of standard deviation 1 % around their round's, and rounds' are normal around the truth with so
// many times that. `score` is the interval of a score of 5 shapes that share their rounds' shifts.
// `pooled` is what is not used: order statistics 10 and 21 of the 30 ratios, which hold the median
// with 95.7 % where all 30 are independent.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "score/score.h"

using namespace kjudge;

namespace {

constexpr double kNoise = 0.01;
constexpr int kShapes = 5;

using Random = std::mt19937_64;

struct Noise {
  const char* name;
  std::function<double(Random&)> draw;  // standard deviation 1, or of that order; median 0
};

double normal(Random& random) { return std::normal_distribution<double>()(random); }

const std::array<Noise, 4> kNoises = {{
    {"normal", normal},
    // 3 degrees of freedom, scaled to deviation 1: outliers far beyond what a normal one has.
    {"heavy tails",
     [](Random& random) {
       return std::student_t_distribution<double>(3)(random) / std::sqrt(3.0);
     }},
    // Each arm is in one of two states, 4 deviations apart, one time in four in the slower.
    {"two modes",
     [](Random& random) {
       std::bernoulli_distribution slow(0.25);
       return 4.0 * (int{slow(random)} - int{slow(random)}) + 0.5 * normal(random);
     }},
    // Half of all values are near the middle, the rest is a long tail to one side or the other.
    {"skewed arms",
     [](Random& random) {
       std::exponential_distribution<double> tail;
       const double baseline = tail(random), submission = tail(random);
       return (baseline * baseline - submission * submission) / 4;
     }},
}};

struct Regimes {
  const char* name;
  std::vector<int> pairs;  // of a round
};
const std::array<Regimes, 3> kRegimes = {{{"5", {5}}, {"4+1", {4, 1}}, {"2+2+1", {2, 2, 1}}}};

void set_times(Pair& pair, double log_ratio) {
  const auto clocks = [](double ns) { return Clocks{ns, ns, ns, ns}; };
  pair.arms[0].replays = {clocks(1e6 * std::exp(log_ratio))};
  pair.arms[1].replays = {clocks(1e6)};
}

ShapeFacts simulated(int number, const Noise& noise, const Regimes& regimes,
                     const std::array<double, kRounds>& shifts, Random& random) {
  ShapeFacts shape;
  shape.name = std::to_string(number);
  for (const double shift : shifts) {
    RoundFacts& round = shape.rounds.emplace_back();
    for (std::size_t regime = 0; regime < regimes.pairs.size(); ++regime) {
      for (int i = 0; i < regimes.pairs[regime]; ++i) {
        Pair& pair = round.pairs.emplace_back();
        pair.regime = std::to_string(regime);
        set_times(pair, shift + kNoise * noise.draw(random));
      }
    }
  }
  return shape;
}

bool holds(const Interval& interval) { return interval.low <= 1 && interval.high >= 1; }

bool pooled_holds(const ShapeFacts& shape) {
  std::vector<double> ratios;
  for (const RoundFacts& round : shape.rounds) {
    for (const Pair& pair : round.pairs) ratios.push_back(pair.ratio());
  }
  std::sort(ratios.begin(), ratios.end());
  return holds({ratios[9], ratios[20]});
}

void measure(const Noise& noise, const Regimes& regimes, double between, int evaluations,
             Random& random) {
  int held = 0, score_held = 0, pooled = 0;
  double width = 0, score_width = 0;
  for (int i = 0; i < evaluations; ++i) {
    std::array<double, kRounds> shifts{};
    for (double& shift : shifts) shift = between * kNoise * normal(random);
    Evaluation evaluation;
    evaluation.verdict = Verdict::accepted;
    for (int s = 0; s < kShapes; ++s) {
      evaluation.shapes.push_back(simulated(s, noise, regimes, shifts, random));
    }
    const Score scored = score(evaluation);
    const Interval& interval = scored.shapes.front().interval;
    held += holds(interval) ? 1 : 0;
    score_held += holds(scored.interval) ? 1 : 0;
    pooled += pooled_holds(evaluation.shapes.front()) ? 1 : 0;
    width += interval.high - interval.low;
    score_width += scored.interval.high - scored.interval.low;
  }
  const auto percent = [&](int count) { return 100.0 * count / evaluations; };
  std::printf("%-12s %-6s %4.1f   %6.2f %6.2f   %6.2f %6.2f   %6.2f\n", noise.name, regimes.name,
              between, percent(held), 100 * width / evaluations, percent(score_held),
              100 * score_width / evaluations, percent(pooled));
}

}  // namespace

int main(int argc, char** argv) {
  const int evaluations = argc > 1 ? std::atoi(argv[1]) : 20000;
  std::printf("%d evaluations a row, coverage and mean width in %%; 96.88 is what is promised\n",
              evaluations);
  std::printf("%-12s %-6s %4s   %6s %6s   %6s %6s   %6s\n", "noise", "pairs", "btw", "shape",
              "width", "score", "width", "pooled");
  Random random(20261130);
  for (const Noise& noise : kNoises) {
    for (const Regimes& regimes : kRegimes) {
      for (const double between : {0.0, 0.5, 1.0, 2.0}) {
        measure(noise, regimes, between, evaluations, random);
      }
    }
  }
  return 0;
}
