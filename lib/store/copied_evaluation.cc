// SPDX-License-Identifier: Apache-2.0
#include "store/copied_evaluation.h"

#include "error.h"
#include "store/blobs.h"
#include "store/pruning.h"
#include "store/results.h"

namespace kjudge {

namespace fs = std::filesystem;

bool has_its_recording(const fs::path& evaluation, const Evaluation& facts) {
  if (!facts.bundle_sha256 && facts.verdict != Verdict::accepted) return true;
  if (fs::exists(evaluation / "bundle.kjb")) return true;
  try {
    return read_pruned(evaluation).has_value();
  } catch (const Error&) {  // fsck tells
    return false;
  }
}

void link_evaluation(const fs::path& evaluation, const fs::path& to) {
  for (const char* name : {"bundle.kjb", "kernels.sha256", "pruned.json", "secret.json"}) {
    link_or_copy(evaluation / name, to / name);
  }
  for (const fs::path& profile : profile_files(evaluation)) {
    link_or_copy(profile, to / profile.filename());
  }
}

}  // namespace kjudge
