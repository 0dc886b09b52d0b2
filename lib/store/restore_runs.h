// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "store/identity.h"
#include "store/results.h"
#include "store/score_index.h"

namespace kjudge {

// Writes the files of runs that are missing, from submission.json of those in each: it belongs to
// whoever's token is the first of them to have one, else to the organizer. `restored` is called for
// each. Fault::host.
void restore_runs(const ResultsDirectory& results, const ScoreIndex& index,
                  const std::function<void(const Run&)>& restored);

}  // namespace kjudge
