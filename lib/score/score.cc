// SPDX-License-Identifier: Apache-2.0
#include "score/score.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "error.h"
#include "replay/plausible.h"
#include "stats.h"

namespace kjudge {
namespace {

// The distinct regimes of a shape's pairs, in the order they first appear.
std::vector<std::string> regimes_of(const ShapeFacts& shape) {
  std::vector<std::string> names;
  for (const RoundFacts& round : shape.rounds) {
    for (const Pair& pair : round.pairs) {
      if (std::find(names.begin(), names.end(), pair.regime) == names.end()) {
        names.push_back(pair.regime);
      }
    }
  }
  return names;
}

// The median ratio of each regime's pairs; empty when a regime has none.
std::vector<double> medians_of(const std::vector<const RoundFacts*>& rounds,
                               const std::vector<std::string>& regimes) {
  std::vector<double> medians;
  for (const std::string& regime : regimes) {
    std::vector<double> ratios;
    for (const RoundFacts* round : rounds) {
      for (const Pair& pair : round->pairs) {
        if (pair.regime == regime) ratios.push_back(pair.ratio());
      }
    }
    if (ratios.empty()) return {};
    medians.push_back(median(ratios));
  }
  return medians;
}

// An arm's time over the regimes as the speedup is taken over them, so that the two times of a
// shape stand for its speedup.
double time_of(const ShapeFacts& shape, const std::vector<std::string>& regimes, ArmName arm) {
  std::vector<double> medians;
  for (const std::string& regime : regimes) {
    std::vector<double> times;
    for (const RoundFacts& round : shape.rounds) {
      for (const Pair& pair : round.pairs) {
        if (pair.regime == regime) {
          times.push_back(pair.arms[static_cast<std::size_t>(arm)].time_ns());
        }
      }
    }
    medians.push_back(median(times));
  }
  return geometric_mean(medians);
}

// The median of all pairs lies between the smallest and the largest of the rounds'. A geometric
// mean of such medians need not, where rounds disagree about which of them is large; the interval
// reaches to it then.
Interval span_of(const std::vector<double>& rounds, double all) {
  Interval span{all, all};
  for (const double round : rounds) {
    span = {std::min(span.low, round), std::max(span.high, round)};
  }
  return span;
}

std::optional<TwoModes> modes_of(const ShapeFacts& shape, const std::vector<std::string>& regimes,
                                 ArmName arm) {
  std::vector<std::vector<double>> times(regimes.size());
  double tick_ns = 0;
  for (const RoundFacts& round : shape.rounds) {
    tick_ns = std::max(tick_ns, round.clock_tick_ns);
    for (const Pair& pair : round.pairs) {
      const auto regime = std::find(regimes.begin(), regimes.end(), pair.regime);
      for (const Clocks& clocks : pair.arms[static_cast<std::size_t>(arm)].replays) {
        times[static_cast<std::size_t>(regime - regimes.begin())].push_back(clocks.event_ns);
      }
    }
  }
  return find_two_modes(times, tick_ns);
}

// Times without these bounds have ratios and means that no double holds.
constexpr double kShortestNs = 1e-3;

// Why the times of a timed shape cannot be scored; empty when they can.
std::string broken_times(const ShapeFacts& shape) {
  for (const RoundFacts& round : shape.rounds) {
    for (const Pair& pair : round.pairs) {
      for (const ArmTimes& arm : pair.arms) {
        if (arm.replays.empty()) return "a pair has no times";
        for (const Clocks& clocks : arm.replays) {
          for (const double time :
               {clocks.event_ns, clocks.stamp_ns, clocks.host_ns, clocks.supervisor_ns}) {
            if (!std::isfinite(time) || time <= 0) return "a pair has a time that is not above 0";
            if (time < kShortestNs || time > kMostNs) {
              return "a pair has a time that is not between 0.001 ns and a day";
            }
          }
        }
      }
    }
  }
  return {};
}

// Why a timed shape has not what a ranked evaluation needs; empty when it has.
std::string missing_pairs(const ShapeFacts& shape, const std::vector<std::string>& regimes) {
  if (shape.rounds.size() != static_cast<std::size_t>(kRounds)) {
    return cat(shape.rounds.size(), " of ", kRounds, " rounds");
  }
  for (std::size_t r = 0; r < shape.rounds.size(); ++r) {
    const RoundFacts& round = shape.rounds[r];
    if (round.pairs.size() != static_cast<std::size_t>(kPairsPerRound)) {
      return cat(round.pairs.size(), " of ", kPairsPerRound, " pairs in round ", r + 1);
    }
    if (medians_of({&round}, regimes).empty()) {
      return cat("a regime is missing in round ", r + 1);
    }
  }
  return {};
}

bool same_shapes(const std::vector<ShapeFacts>& some, const std::vector<ShapeFacts>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const ShapeFacts& a, const ShapeFacts& b) {
                      return a.name == b.name && a.timed == b.timed;
                    });
}

// The first device is the evaluation's own, whatever the others come to: of several the best would
// be one card's luck.
void add_devices(Score& score, const Evaluation& evaluation) {
  if (evaluation.others.empty()) return;
  score.devices.push_back({evaluation.device, score.speedup, score.interval});
  Interval common = score.interval;
  for (const OnDevice& other : evaluation.others) {
    const Score scored = kjudge::score(evaluation_on(evaluation, other));
    if (!scored.ranked && score.why_not.empty()) {
      score.why_not = cat("on ", other.device, ": ", scored.why_not);
    }
    if (!same_shapes(evaluation.shapes, other.shapes) && score.why_not.empty()) {
      score.why_not = cat("on ", other.device, ": other shapes than on ", evaluation.device);
    }
    if (scored.shapes.empty()) continue;
    score.devices.push_back({other.device, scored.speedup, scored.interval});
    common = {std::max(common.low, scored.interval.low),
              std::min(common.high, scored.interval.high)};
  }
  score.devices_agree = common.low <= common.high;
}

}  // namespace

Evaluation evaluation_on(const Evaluation& evaluation, const OnDevice& other) {
  Evaluation there;
  there.method = evaluation.method;
  there.device = other.device;
  there.verdict = other.verdict;
  there.message = other.message;
  there.shapes = other.shapes;
  return there;
}

Score score(const Evaluation& evaluation) {
  Score score;
  // The first reason is told.
  const auto not_ranked = [&](const std::string& why) {
    if (score.why_not.empty()) score.why_not = why;
  };
  if (evaluation.verdict != Verdict::accepted) {
    not_ranked(cat("the verdict is ", name(evaluation.verdict)));
  }
  if (evaluation.method > kMethod) {
    not_ranked(cat("method ", evaluation.method, " is newer than this kjudge"));
  }
  std::vector<double> speedups;
  std::vector<std::vector<double>> by_round(static_cast<std::size_t>(kRounds));
  for (const ShapeFacts& shape : evaluation.shapes) {
    const std::string who = cat(shape.timed ? "shape " : "test ", shape.name, ": ");
    if (shape.verdict != Verdict::accepted) not_ranked(cat(who, name(shape.verdict)));
    if (!shape.timed) continue;
    const std::vector<std::string> regimes = regimes_of(shape);
    if (const std::string why = broken_times(shape); !why.empty()) {
      not_ranked(who + why);
      continue;
    }
    if (regimes.empty()) {
      not_ranked(who + "no pairs");
      continue;
    }
    if (const std::string why = missing_pairs(shape, regimes); !why.empty()) not_ranked(who + why);

    ShapeScore& scored = score.shapes.emplace_back();
    scored.name = shape.name;
    scored.regimes = regimes;
    std::vector<const RoundFacts*> all;
    for (std::size_t r = 0; r < shape.rounds.size(); ++r) {
      all.push_back(&shape.rounds[r]);
      const std::vector<double> medians = medians_of({&shape.rounds[r]}, regimes);
      if (medians.empty()) continue;
      scored.rounds.push_back(geometric_mean(medians));
      if (r < by_round.size()) by_round[r].push_back(scored.rounds.back());
    }
    scored.baseline_ns = time_of(shape, regimes, ArmName::baseline);
    scored.submission_ns = time_of(shape, regimes, ArmName::submission);
    scored.regime_medians = medians_of(all, regimes);
    scored.speedup = geometric_mean(scored.regime_medians);
    scored.interval = span_of(scored.rounds, scored.speedup);
    if (shape.floor_ns) {
      const double share = *shape.floor_ns / scored.submission_ns;
      if (std::isfinite(share)) scored.speed_of_light = share;
    }
    scored.below_floor = shape.floor_ns.has_value() && scored.submission_ns < *shape.floor_ns;
    for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
      scored.two_modes[static_cast<std::size_t>(arm)] = modes_of(shape, regimes, arm);
    }
    speedups.push_back(scored.speedup);
  }
  std::set<std::string> names;
  for (const ShapeFacts& shape : evaluation.shapes) {
    if (!names.insert(shape.name).second) not_ranked(cat("shape ", shape.name, " is there twice"));
  }
  if (speedups.empty()) {
    not_ranked("no timed shape");
    return score;
  }
  score.speedup = geometric_mean(speedups);
  for (const std::vector<double>& values : by_round) {
    // A round counts with every shape or not at all.
    if (values.size() == speedups.size()) score.rounds.push_back(geometric_mean(values));
  }
  score.interval = span_of(score.rounds, score.speedup);
  add_devices(score, evaluation);
  score.counts = score.why_not.empty();
  if (!evaluation.variant.all_shapes()) {
    not_ranked(cat("only ", request_text(evaluation.variant), " was asked for"));
  }
  score.ranked = score.why_not.empty();
  return score;
}

Score part_of(const Score& whole, const std::vector<std::string>& names) {
  Score part;
  for (const ShapeScore& shape : whole.shapes) {
    if (std::find(names.begin(), names.end(), shape.name) != names.end()) {
      part.shapes.push_back(shape);
    }
  }
  part.counts = whole.counts;
  part.ranked = whole.counts && !part.shapes.empty() && part.shapes.size() == names.size();
  if (!part.ranked) {
    part.why_not = whole.counts ? "not all shapes of this variant were asked for" : whole.why_not;
  }
  if (part.shapes.empty()) return part;
  std::vector<double> speedups;
  for (const ShapeScore& shape : part.shapes) speedups.push_back(shape.speedup);
  part.speedup = geometric_mean(speedups);
  for (std::size_t r = 0; r < static_cast<std::size_t>(kRounds); ++r) {
    std::vector<double> values;
    for (const ShapeScore& shape : part.shapes) {
      // Of fewer it is not known which they are.
      if (shape.rounds.size() == static_cast<std::size_t>(kRounds))
        values.push_back(shape.rounds[r]);
    }
    if (values.size() == speedups.size()) part.rounds.push_back(geometric_mean(values));
  }
  part.interval = span_of(part.rounds, part.speedup);
  return part;
}

}  // namespace kjudge
