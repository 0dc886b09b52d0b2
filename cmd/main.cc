// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "failure.h"
#include "judge/interrupt.h"
#include "options.h"

int main(int argc, char** argv) {
  using namespace kjudge;
  CLI::App app(
      "kjudge judges GPU-kernel contests: is a submission right, and how much faster than "
      "the baseline?",
      "kjudge");
  int status = exit_done;
  try {
    set_up(app);
    add_commands(app, status);
    refuse_empty_values(app);
    note_interrupts();
    app.parse(argc, argv);
  } catch (...) {
    status = report_failure(app);
  }
  return std::cout.flush() ? status : exit_io;
}
