// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "commands.h"
#include "replay/replay.h"

namespace kjudge {

// Started by the supervisor only, so not in the help.
void add_worker(CLI::App& app, int& status) {
  const auto socket = std::make_shared<int>(-1);
  CLI::App* command = app.add_subcommand("worker", "")->group("");
  command->add_option("--socket", *socket, "")->required();
  command->callback([=, &status] { status = run_worker(*socket); });
}

}  // namespace kjudge
