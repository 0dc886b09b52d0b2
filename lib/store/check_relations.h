// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "store/check_store.h"
#include "store/results.h"
#include "store/score_index.h"

namespace kjudge {

// A part of check_store(): what is missing, or was changed, by what the files of a results
// directory say of each other. Submissions and evaluations that others name or that the index knew,
// files of runs and tokens of whoever handed in, challenges that results are of, ids that two have.
// `index` was made from the files.
void check_relations(const ResultsDirectory& results, const ScoreIndex& index,
                     const std::function<void(StoreFinding)>& found);

}  // namespace kjudge
