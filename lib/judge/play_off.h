// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json_fields.h"
#include "judge/queue.h"
#include "judge/rejudge.h"
#include "store/standings.h"

namespace kjudge {

struct PlayOffDone {
  // Whose submissions were judged again because they led with one judging only; in order.
  std::vector<int> judged_again;
  std::vector<int> play_offs;  // records that were made
  std::size_t failed = 0;      // judgements and groups that ended in a judge error, or had no
                               // recording
  std::size_t elsewhere = 0;   // submissions that other judges have
};

// What `kjudge playoff --json` prints.
const FieldTable<PlayOffDone>& played_off_table();

// First whoever leads with one judging only is judged again on fresh seeds, until the first was
// judged twice and nobody is pending; then the runs that are tied with the first are played off:
// each one's recording is replayed with that of the first in the baseline's place. Of the request's
// variant on this kind of device; nullopt: of all of the challenge, then of each of ranked_parts().
// Fault::usage when it is not of the challenge.
PlayOffDone play_off(const Driver& driver, const Challenge& challenge,
                     const ResultsDirectory& results, const std::optional<VariantRequest>& request,
                     const JudgeAgainOptions& options, const QueueReports& reports);

}  // namespace kjudge
