// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "replay/evaluation.h"

namespace kjudge {

// Holds each step of a capture process to its limit, from outside, by kjudge's own clock. How far
// the process is it tells by the size of a file: 0 until the submission's code starts, 1 its
// import, 2 prepare, then one for each shape, and one for the export. That file is the
// contestant's to change, who can only shorten its own time so: steps never go back, and whoever
// runs the process gives it no more than the sum of all limits.
class CaptureSteps {
 public:
  // Beyond prepare and capture: starting Python, the export of memory to the bundle.
  static constexpr double kExportSeconds = 120;

  // `shapes`: the names of those that are captured, in order. The file need not be there.
  CaptureSteps(std::filesystem::path file, const ChallengeLimits& limits, std::string submission,
               std::vector<std::string> shapes);

  // To be asked all the time: whether the step that runs is still within its limit.
  bool in_time();
  // Of the step that was not: its name, its limit, what to do.
  std::string message() const;
  // What was seen of each step, the last one up to now.
  std::vector<Phase> phases() const;

 private:
  enum class Step { start, import, prepare, capture, export_ };
  Step step() const;
  double seconds() const;  // of this step

  std::filesystem::path file_;
  ChallengeLimits limits_;
  std::string submission_;
  std::vector<std::string> shapes_;
  std::size_t told_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<Phase> ended_;
};

}  // namespace kjudge
