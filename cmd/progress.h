// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "replay/replay.h"

namespace kjudge {

// One line on stderr that is written over, with the time left; where stderr is no terminal
// only that kjudge waits for another one.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);
  void wipe();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool color_;
  bool shown_ = false;
  Clock::time_point began_, last_;  // of this measurement; of what is on the screen
  double begun_at_ = 0;             // done, then
  std::string step_;
};

}  // namespace kjudge
