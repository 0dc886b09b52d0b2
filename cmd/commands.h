// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kjudge {

// Each adds its subcommand to `app`; its callback sets `status`, the exit code, or throws.
void add_selftest(CLI::App& app, int& status);
void add_capture(CLI::App& app, int& status);
void add_replay(CLI::App& app, int& status);
void add_score(CLI::App& app, int& status);
void add_rank(CLI::App& app, int& status);
void add_judge(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_dump(CLI::App& app, int& status);
void add_bar(CLI::App& app, int& status);
void add_export(CLI::App& app, int& status);
void add_playoff(CLI::App& app, int& status);
void add_rejudge(CLI::App& app, int& status);
void add_invalidate(CLI::App& app, int& status);
void add_metrics(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_fsck(CLI::App& app, int& status);
void add_pack(CLI::App& app, int& status);
void add_pages(CLI::App& app, int& status);
void add_profile(CLI::App& app, int& status);
void add_token(CLI::App& app, int& status);
void add_serve(CLI::App& app, int& status);
void add_submit(CLI::App& app, int& status);
void add_status(CLI::App& app, int& status);
void add_replay_once(CLI::App& app, int& status);
void add_worker(CLI::App& app, int& status);
// All of them, in the order of the help.
void add_commands(CLI::App& app, int& status);

// The one table of exit codes.
enum ExitCode {
  exit_done = 0,          // or accepted
  exit_not_accepted = 1,  // judged, or refused at the door
  exit_usage = 2,
  exit_malformed = 3,  // a file: challenge, bundle, result
  exit_authentication = 4,
  exit_judge_error = 5,
  exit_io = 6,
  exit_try_later = 75,
  exit_interrupted = 130,  // by SIGINT; others are 128 and the signal too: 129, 143
};

}  // namespace kjudge
