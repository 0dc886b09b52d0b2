// SPDX-License-Identifier: Apache-2.0
#include "replay/plan.h"

#include <optional>
#include <string_view>

#include "error.h"
#include "replay/draw.h"

namespace kjudge {
namespace {

ArmName other(ArmName arm) {
  return arm == ArmName::baseline ? ArmName::submission : ArmName::baseline;
}

// Shapes of one evaluation draw differently from one seed. FNV-1a.
std::uint64_t seed_of(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = seed ^ 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::vector<std::vector<PlannedPair>> plan_pairs(const Shape& shape, int rounds,
                                                 int pairs_per_round, std::uint64_t seed) {
  std::vector<std::size_t> cycle;
  for (std::size_t i = 0; i < shape.regimes.size(); ++i) {
    cycle.insert(cycle.end(), static_cast<std::size_t>(shape.regimes[i].pairs_per_round), i);
  }
  KJ_CHECK(!cycle.empty());

  Draw draw(seed_of(shape.name, seed));
  std::vector<std::optional<ArmName>> owed(shape.regimes.size());  // second of a block of two
  std::vector<std::vector<PlannedPair>> plan;
  std::size_t next = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<PlannedPair> pairs;
    for (int i = 0; i < pairs_per_round; ++i) {
      pairs.push_back({cycle[next++ % cycle.size()], ArmName::baseline});
    }
    draw.shuffle(pairs);
    for (PlannedPair& pair : pairs) {
      std::optional<ArmName>& second = owed[pair.regime];
      if (second) {
        pair.first = *second;
        second.reset();
      } else {
        pair.first = draw.coin() ? ArmName::baseline : ArmName::submission;
        second = other(pair.first);
      }
    }
    plan.push_back(std::move(pairs));
  }
  return plan;
}

std::vector<PlannedRound> plan_rounds(int rounds, std::uint64_t seed) {
  Draw draw(seed_of("rounds", seed));
  std::vector<PlannedRound> plan;
  std::vector<PlannedRound> block;
  for (int round = 0; round < rounds; ++round) {
    if (block.empty()) {
      for (const ArmName first : {ArmName::baseline, ArmName::submission}) {
        block.push_back({first, {0, 1}});
        block.push_back({first, {1, 0}});
      }
      draw.shuffle(block);
    }
    plan.push_back(block.back());
    block.pop_back();
  }
  return plan;
}

}  // namespace kjudge
