// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "error.h"
#include "judge/report.h"

namespace kjudge {

ProgressLine::ProgressLine() {
  const char* terminal = std::getenv("TERM");
  terminal_ =
      ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  color_ = no_color == nullptr || *no_color == '\0';
}

ProgressLine::~ProgressLine() { wipe(); }

void ProgressLine::show(const Progress& progress) {
  if (!terminal_) {
    // Elsewhere silence is right, but not for as long as someone else decides.
    const bool waits = progress.step.starts_with("waiting");
    if (waits && progress.step != step_)
      std::cerr << "kjudge: " << printable(progress.step) << std::endl;
    step_ = progress.step;
    return;
  }
  const auto now = Clock::now();
  if (!shown_ || progress.done < begun_at_ || (progress.done > 0 && begun_at_ == 0)) {
    began_ = now;  // the clock of the time left starts with the first replay
    begun_at_ = progress.done;
  }
  if (shown_ && progress.step == step_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  step_ = progress.step;
  shown_ = true;

  std::string text = progress.step;
  if (!progress.shape.empty()) text += " " + progress.shape;
  if (progress.done > 0) text += cat("  ", static_cast<int>(100 * progress.done), " %");
  const double spent = std::chrono::duration<double>(now - began_).count();
  if (progress.done > begun_at_ + 0.01) {
    const double left = spent * (1 - progress.done) / (progress.done - begun_at_);
    text += cat("  ", static_cast<int>(std::ceil(left)), " s left");
  }
  std::cerr << "\r\033[K" << (color_ ? "\033[2m" : "") << printable(text)
            << (color_ ? "\033[0m" : "") << std::flush;
}

void ProgressLine::wipe() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace kjudge
