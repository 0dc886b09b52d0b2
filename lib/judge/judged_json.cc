// SPDX-License-Identifier: Apache-2.0
#include "judge/judged_json.h"

#include "score/result_json.h"

namespace kjudge {
namespace {

constexpr int kMostNumber = 1'000'000'000;

FieldTable<JudgedRow> row_table() {
  return FieldTable<JudgedRow>(
      {required("number", &JudgedRow::number, integer_kind(1, kMostNumber), "of the submission"),
       required("run", &JudgedRow::run, text_kind(1000), "its run"),
       required("verdict", &JudgedRow::verdict, verdict_kind(), "on it"),
       required("message", &JudgedRow::message, text_kind(), "what happened and what to do"),
       optional("same_as", &JudgedRow::same_as, integer_kind(0, kMostNumber),
                "number of an earlier submission with the same files, whose result it has; absent "
                "where there is none"),
       optional("same_kernels_as", &JudgedRow::same_kernels_as, integer_kind(0, kMostNumber),
                "number of the first submission of other files whose recording launches the same; "
                "absent where there is none")});
}

FieldTable<RefusedHandIn> refused_table() {
  using R = RefusedHandIn;
  return FieldTable<R>({required("name", &R::name, text_kind(4096), "of the file or folder"),
                        required("message", &R::message, text_kind(), "why it was not taken")});
}

}  // namespace

const FieldTable<JudgedSummary>& judged_table() {
  static const FieldTable<JudgedSummary> table(
      {format_field<JudgedSummary>("kjudge-judged/1"),
       required("judged", &JudgedSummary::judged, list_kind(object_kind(row_table())),
                "what was judged now, in order"),
       required("refused", &JudgedSummary::refused, list_kind(object_kind(refused_table())),
                "what --from has that was refused and so has no number")});
  return table;
}

JudgedSummary summary_of(const JudgedQueue& done) {
  JudgedSummary summary{{}, done.refused};
  for (const auto& [identity, evaluation, same_as, same_kernels_as] : done.judged) {
    summary.judged.push_back({identity.number, identity.run, evaluation.verdict, evaluation.message,
                              same_as, same_kernels_as});
  }
  return summary;
}

}  // namespace kjudge
