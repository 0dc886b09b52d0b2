// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "challenge/variant_request.h"
#include "score/rank.h"
#include "store/judgements.h"
#include "store/score_index.h"

namespace kjudge {

// The standings of a results directory, for one variant.

struct VariantStandings {
  VariantRequest variant;  // as it was found: version and gpu filled in
  Terms terms;
  std::vector<std::string> shapes;     // that count; empty: all of an evaluation's
  std::optional<Challenge> challenge;  // where it is kept
  Standings standings;
  std::set<int> open;  // of the submissions in them, those whose code may be shown
  Records<Bar> bars;   // of this variant
  struct Invalid {
    int submission = 0, evaluation = 0;
    std::string run, reason;
  };
  std::vector<Invalid> invalid;  // on these terms
  // Of part of the challenge, so that it has no place here.
  struct Partial {
    int submission = 0, evaluation = 0;
    std::string run;
    VariantRequest variant;
  };
  std::vector<Partial> partial;        // on these terms
  std::vector<int> unverified;         // accepted submissions whose files were not kept
  std::size_t left_out = 0;            // submissions that have evaluations on other terms only
  std::vector<std::string> elsewhere;  // other versions, GPUs and methods there are, for people
};

// What a ranking is made of, read once.
struct StandingsSource {
  const ResultsDirectory& results;
  const ScoreIndex& index;
  Records<Invalidation> invalidations;  // standing ones
  Records<Bar> bars;                    // standing ones
  std::vector<PlayedOff> play_offs;
};
StandingsSource read_source(const ResultsDirectory& results, const ScoreIndex& index,
                            const ResultsDirectory::Report& report);

// Fault::usage, with what there is instead, when the request names a challenge that nothing here is
// for, a version of it that is not here, or a GPU that judged nothing of it though others did.
void require_known(const ResultsDirectory& results, const ScoreIndex& index,
                   const VariantRequest& request);
// Of the terms that the request leaves open, those of the newest evaluation. nullopt when nothing
// was judged yet that it names. Fault::usage as require_known(), and when it names several kinds of
// GPU, a dtype or a shape that the challenge has not, or a dtype where the challenge is not kept.
std::optional<VariantStandings> make_standings(const StandingsSource& source,
                                               const std::optional<VariantRequest>& request);

// Whether a ranking over these shapes, empty: all, is one over all that are timed on this arch.
// Only then the challenge's target and bounty are about it.
bool is_whole(const Challenge& challenge, const std::string& arch,
              const std::vector<std::string>& shapes);

// Part of a challenge that has a ranking of its own: a dtype, or a shape.
struct RankedPart {
  std::string dtype, shape;
  std::vector<std::string> shapes;  // that count
};
// Of what the challenge, null: not known, times on this arch: each dtype where there are several,
// then each shape that somebody asked for.
std::vector<RankedPart> ranked_parts(const Challenge* challenge, const std::string& arch,
                                     const std::set<std::string>& asked);

// The evaluations of a run on the same terms and over the same shapes, as they were judged.
struct HistoryEntry {
  int submission = 0, evaluation = 0;
  std::string id, started;
  Verdict verdict = Verdict::judge_error;
  Score score;                       // over the variant's shapes
  VariantRequest variant;            // that was asked for; none: all of the challenge
  std::vector<std::string> invalid;  // reasons
};
std::vector<HistoryEntry> history_of(const StandingsSource& source,
                                     const VariantStandings& standings, const std::string& run);

// Whether the code of a submission may be shown, by the challenge and the submission; and with it
// what quotes the code: logs, machine code.
bool may_publish(const Challenge& challenge, const SubmissionIdentity& submission,
                 const SubmissionNotes& notes);
// By all that it was judged for: one challenge alone has no say, and one that is not known, null,
// allows nothing.
bool may_publish(const ScoredSubmission& submission,
                 const std::function<const Challenge*(const Terms&)>& challenge_of);

}  // namespace kjudge
