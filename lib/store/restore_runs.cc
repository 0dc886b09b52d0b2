// SPDX-License-Identifier: Apache-2.0
#include "store/restore_runs.h"

#include <map>

namespace kjudge {

void restore_runs(const ResultsDirectory& results, const ScoreIndex& index,
                  const std::function<void(const Run&)>& restored) {
  std::map<std::filesystem::path, Run> runs;  // by their files
  for (const ScoredSubmission& one : index.submissions()) {
    const SubmissionIdentity& identity = one.identity;
    const auto [at, is_new] =
        runs.try_emplace(run_file(results.path(), identity.run),
                         Run{identity.run, identity.owner, identity.received});
    if (!is_new && at->second.owner.empty()) at->second.owner = identity.owner;
  }
  for (const auto& [file, run] : runs) {
    if (!std::filesystem::exists(file) && write_run(results.path(), run)) restored(run);
  }
}

}  // namespace kjudge
