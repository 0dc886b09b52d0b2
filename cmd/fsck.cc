// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "file.h"
#include "judge/interrupt.h"
#include "judge/profile.h"
#include "judge/report.h"
#include "options.h"
#include "store/check_json.h"
#include "store/restore_runs.h"

namespace kjudge {
namespace {

struct FsckOptions {
  bool json = false, restore_runs = false;
  std::string results;
};

void restore_missing_runs(const ResultsDirectory& results) {
  const ScoreIndex index(results, [](const Error&) {});  // what it leaves out is found below
  restore_runs(results, index, [](const Run& run) {
    say(printable(cat("the file of run ", run.name, " was missing; written anew: it belongs to ",
                      run.owner.empty() ? "the organizer" : run.owner)));
  });
}

int fsck_command(const FsckOptions& options) {
  if (options.restore_runs) restore_missing_runs(ResultsDirectory(options.results));
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
  command->add_flag(
      "--restore-runs", options->restore_runs,
      "First write the files of runs that are missing: each goes to whoever handed in "
      "for it first with a token");
  command->callback([=, &status] { status = fsck_command(*options); });
}

}  // namespace kjudge
