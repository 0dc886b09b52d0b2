// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json.h"
#include "web/server/contest_watch.h"

namespace kjudge {

// What the interface answers, as openapi.json has it. `url` is the site's, without '/' at its end.

// Where a submission is on its way, as the view had it and, when that is behind, as its folder has
// it now. `wanted` are the challenges that must have an evaluation for it to be done.
Json submission_answer(const ContestView& view, const StoredSubmission& submission,
                       const std::vector<std::string>& wanted, const std::string& url);

Json leaderboard_answer(const ContestView& view, const std::string& challenge,
                        const std::string& url);

// Without its package.
Json::Object challenge_answer(const Challenge& challenge, const std::string& url);

}  // namespace kjudge
