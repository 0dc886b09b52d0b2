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
    for (const auto add :
         {add_selftest, add_capture, add_replay, add_score, add_rank, add_judge, add_show, add_dump,
          add_doctor, add_profile, add_pack, add_replay_once, add_worker}) {
      add(app, status);
    }
    refuse_empty_values(app);
    note_interrupts();
    app.parse(argc, argv);
  } catch (...) {
    status = report_failure(app);
  }
  return std::cout.flush() ? status : exit_io;
}
