// SPDX-License-Identifier: Apache-2.0

// The worker that tests of the replay start: what `kjudge worker --socket FD` is.
#include <cstdlib>
#include <string_view>

#include "replay/replay.h"

int main(int count, char** arguments) {
  if (count != 4 || std::string_view(arguments[1]) != "worker") return 2;
  return kjudge::run_worker(std::atoi(arguments[3]));
}
