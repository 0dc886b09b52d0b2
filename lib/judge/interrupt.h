// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kjudge {

// Thrown by check_interrupt(), and by nothing else. No std::exception, so that code which turns
// failures into verdicts lets it pass; destructors on its way remove what was made.
struct Interrupted {
  int signal = 0;
};

// SIGINT, SIGTERM and SIGHUP are noted from now on. A second one ends the process at once; its
// children die with it.
void note_interrupts();

// Throws Interrupted if one was noted. To be called at least every 100 ms of any long wait.
void check_interrupt();

}  // namespace kjudge
