// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "file.h"
#include "judge/interrupt.h"
#include "judge/profile.h"
#include "judge/report.h"
#include "options.h"
#include "store/check_json.h"

namespace kjudge {
namespace {

struct FsckOptions {
  bool json = false;
  std::string results;
};

int fsck_command(const FsckOptions& options) {
  const StoreCheck check =
      check_store(options.results, {check_interrupt, [](const std::filesystem::path& file) {
                                      profile_from_json(read_file(file), file);
                                    }});
  bool damaged = false;
  for (const StoreFinding& finding : check.findings) {
    damaged = damaged || finding.kind == StoreFinding::Kind::damage;
    if (options.json) continue;
    std::cout << printable(cat(finding.path.string(), ": ", name(finding.kind), ": ", finding.what,
                               "\n  to do: ", finding.advice, "\n"));
  }
  if (options.json) {
    std::cout << print_json(check_json(check));
  } else {
    std::cerr << "kjudge: " << check.submissions << " submissions, " << check.evaluations
              << " evaluations: " << (damaged ? "there is damage" : "all are whole") << "\n";
  }
  return damaged ? exit_malformed : exit_done;
}

}  // namespace

void add_fsck(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<FsckOptions>(
      app, "fsck", "Find and explain damage in a results directory; write its index anew", command);
  add_results_option(*command, options->results);
  command->callback([=, &status] { status = fsck_command(*options); });
}

}  // namespace kjudge
