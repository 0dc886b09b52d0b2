// SPDX-License-Identifier: Apache-2.0
#pragma once

// Evaluations for tests, as measure() would have left them.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "replay/evaluation.h"

namespace kjudge::evaluations {

// The submission takes 1 ms in every replay, the baseline `ratio(round, pair)` times that.
inline ShapeFacts shape(const std::string& name,
                        const std::function<double(int round, int pair)>& ratio) {
  ShapeFacts facts;
  facts.name = name;
  for (int r = 0; r < kRounds; ++r) {
    RoundFacts& round = facts.rounds.emplace_back();
    round.null_graph_ns = 2560;
    round.clock_tick_ns = 32;
    for (int p = 0; p < kPairsPerRound; ++p) {
      Pair& pair = round.pairs.emplace_back();
      pair.regime = "nominal";
      pair.first = (r + p) % 2 == 0 ? ArmName::baseline : ArmName::submission;
      const auto clocks = [](double event) {
        return Clocks{event, event + 640, event + 12'000, event + 60'000.5};
      };
      pair.arms[0].replays = {clocks(1e6 * ratio(r, p))};
      pair.arms[1].replays = {clocks(1e6)};
    }
  }
  return facts;
}

inline Evaluation accepted(std::vector<ShapeFacts> shapes) {
  Evaluation evaluation;
  evaluation.id = "7f1c9a52-6f6e-4d53-9a55-0d6a1f4a7c11";
  evaluation.challenge = "softmax";
  evaluation.challenge_sha256 = std::string(64, 'a');
  evaluation.submission = "submissions/42";
  evaluation.submission_sha256 = std::string(64, 'b');
  evaluation.kjudge_version = "0.1.0";
  evaluation.driver = "host 1.0";
  evaluation.device = "a processor";
  evaluation.arch = "x86_64";
  evaluation.node = "node1";
  evaluation.trust = "process";
  evaluation.started = "2025-01-31T12:00:00Z";
  evaluation.peak_bytes = 6 << 20;
  evaluation.verdict = Verdict::accepted;
  evaluation.shapes = std::move(shapes);
  evaluation.phases = {{"capture", 0.5}, {"reference", 1.25}};
  return evaluation;
}

}  // namespace kjudge::evaluations
