// SPDX-License-Identifier: Apache-2.0

// One short evaluation on the host driver, in a process that a test may have killed, or with a
// driver that fails. It judges the reference's, baseline's and submission's bundles, or its own.
#include <cstdio>

#include "replay/contest.h"

int main(int count, char** arguments) {
  using namespace kjudge;
  try {
    Contest contest(DriverKind::host, {5000});
    contest.options.rounds = 1;
    contest.options.pairs_per_round = 1;
    const Evaluation evaluation = count == 4
                                      ? contest.replay({arguments[1], arguments[2], arguments[3]})
                                      : contest.judge({{"right"}});
    std::printf("%s: %s\n", std::string(name(evaluation.verdict)).c_str(),
                evaluation.message.c_str());
    return evaluation.verdict == Verdict::accepted ? 0 : 1;
  } catch (const Error& error) {
    std::printf("%s: %s\n", std::string(name(error.fault())).c_str(), error.what());
    return 5;
  }
}
