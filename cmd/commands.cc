// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

namespace kjudge {

void add_commands(CLI::App& app, int& status) {
  for (const auto add : {add_selftest,   add_capture, add_replay,  add_score,       add_rank,
                         add_judge,      add_show,    add_dump,    add_doctor,      add_bar,
                         add_invalidate, add_rejudge, add_playoff, add_export,      add_fsck,
                         add_profile,    add_pack,    add_pages,   add_token,       add_metrics,
                         add_serve,      add_submit,  add_status,  add_replay_once, add_worker}) {
    add(app, status);
  }
}

}  // namespace kjudge
