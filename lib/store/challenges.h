// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "challenge/challenge.h"
#include "store/results.h"
#include "store/terms.h"

namespace kjudge {

// RESULTS/challenges/softmax/2/: version 2 of a challenge as it was when it was first judged here,
// so that results can be read without its folder. It appears whole.
std::filesystem::path kept_challenge_folder(const ResultsDirectory& results,
                                            const std::string& challenge, int version);
// Keeps it, in place of what is kept of this version and is another by its hash or cannot be read:
// for a challenge of whose version nothing else was judged (judge/backlog.h refuses that).
void keep_challenge(const ResultsDirectory& results, const Challenge& challenge);

// Every one that can be read.
std::vector<Challenge> kept_challenges(const ResultsDirectory& results);
// Of each of their names the newest, ascending by name.
std::vector<Challenge> newest_kept_challenges(const ResultsDirectory& results);
// nullopt where it is not kept, or cannot be read.
std::optional<Challenge> kept_challenge(const ResultsDirectory& results, const std::string& name,
                                        int version);
// With the shapes of the terms' arch. nullopt where it is not kept, or is another one by its hash.
std::optional<Challenge> kept_challenge(const ResultsDirectory& results, const Terms& terms);

// Those that terms are of, each read once.
class KeptChallenges {
 public:
  explicit KeptChallenges(const ResultsDirectory& results) : results_(results) {}
  // With the shapes of every arch. Null as above.
  const Challenge* of(const Terms& terms);

 private:
  const ResultsDirectory& results_;
  std::map<std::pair<std::string, int>, std::optional<Challenge>> known_;  // by name and version
};

}  // namespace kjudge
