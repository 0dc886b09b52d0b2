// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/evaluation.h"

namespace kjudge {

// How far from 1 the speedups of one shape came out in evaluations whose arms were the same kernel.
// Shares, not percent.
struct Noise {
  std::string shape;
  double time_ns = 0;  // of the kernel: median over the evaluations
  int replays_per_arm = 1;
  double error_median = 0, error_95 = 0;  // of |speedup - 1|; error_95 is the 95 % quantile
  double within = 0;                      // standard deviation of a pair's log ratio in its round
  std::optional<double> between;  // ... of rounds, beyond what their pairs explain; absent with one
  double width = 0;               // mean width of the interval
  double holds_1 = 0;             // share of the intervals that contain 1
  int voids = 0;                  // pairs that were taken again
};

// Of accepted evaluations of the same shapes, at least one; in the order of the shapes.
std::vector<Noise> noise_of(const std::vector<Evaluation>& evaluations);

}  // namespace kjudge
