// SPDX-License-Identifier: Apache-2.0
#include "judge/interrupt.h"

#include <signal.h>

#include <initializer_list>

namespace kjudge {
namespace {

volatile sig_atomic_t noted_signal = 0;

void note(int signal) { noted_signal = signal; }

}  // namespace

void note_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup stays nohup
  }
}

void check_interrupt() {
  if (noted_signal != 0) throw Interrupted{noted_signal};
}

}  // namespace kjudge
