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
  std::size_t failed = 0;      // judgements and groups that ended in a judge error, and who had no
                               // recording
  std::size_t elsewhere = 0;   // submissions that other judges have
};

// What `kjudge playoff --json` prints.
const FieldTable<PlayOffDone>& played_off_table();

// First whoever has the same files as one that was judged since has that result too, so that copies
// are not judged until one of them is lucky. Then whoever leads with one judging only is judged
// again on fresh seeds, until the first was judged twice and nobody is pending; then groups of runs
// that are tied are played off: each one's recording is replayed with that of the group's first in
// the baseline's place. Any number may do so at the same time. Of the request's variant on this
// kind of device; nullopt: of all of the challenge, then of each of ranked_parts(). Fault::usage
// when it is not of the challenge.
PlayOffDone play_off(const Driver& driver, const Challenge& challenge,
                     const ResultsDirectory& results, const std::optional<VariantRequest>& request,
                     const JudgeAgainOptions& options, const QueueReports& reports);

}  // namespace kjudge
