// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "challenge/challenge.h"
#include "replay/evaluation.h"

namespace kjudge {

// What is drawn before anything is measured.

struct PlannedPair {
  std::size_t regime = 0;  // index into Shape::regimes
  ArmName first = ArmName::baseline;
};

// The pairs of one shape, by round. Each round holds the regimes in the shape's fixed counts, in a
// drawn order; within a regime, pairs 2k and 2k+1 of the evaluation have opposite orders, so that
// AB and BA balance in every regime and in all.
// Where pairs_per_round is not the sum of the counts, the counts repeat across rounds.
std::vector<std::vector<PlannedPair>> plan_pairs(const Shape& shape, int rounds,
                                                 int pairs_per_round, std::uint64_t seed);

struct PlannedRound {
  ArmName started_first = ArmName::baseline;
  std::array<std::size_t, 2> slot = {0, 1};  // by ArmName: which of the two sets of buffers
};

// Each of the four combinations of start order and slot comes once in four rounds.
std::vector<PlannedRound> plan_rounds(int rounds, std::uint64_t seed);

}  // namespace kjudge
