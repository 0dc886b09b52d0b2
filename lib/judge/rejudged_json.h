// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json_fields.h"
#include "store/rejudgement.h"

namespace kjudge {

// What `kjudge rejudge` prints with --json.

struct RejudgedPair {
  Rejudged what;
  Evaluation old;
  std::optional<Evaluation> made;  // nullopt: not judged yet
  std::string left_out = {};       // why it never will be; empty: it will
};
Json rejudged_json(const RejudgementSet& set, const std::vector<RejudgedPair>& pairs);

struct ListedSet {
  int set = 0;
  std::string made;
  RejudgementState state = RejudgementState::open;
  std::size_t evaluations = 0;
  std::string reason;
};
Json rejudgements_json(const std::vector<ListedSet>& sets);

std::vector<JsonFormat> rejudged_json_formats();

}  // namespace kjudge
