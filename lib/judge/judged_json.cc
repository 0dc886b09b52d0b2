// SPDX-License-Identifier: Apache-2.0
#include "judge/judged_json.h"

#include "score/result_json.h"

namespace kjudge {
namespace {

constexpr int kMostNumber = 1'000'000'000;

struct Row {
  int number = 1;
  std::string run;
  Verdict verdict = Verdict::judge_error;
  std::string message;
  int same_as = 0, same_kernels_as = 0;
};

struct Printed {
  std::vector<Row> judged;
  std::vector<RefusedHandIn> refused;
};

FieldTable<Row> row_table() {
  return FieldTable<Row>(
      {required("number", &Row::number, integer_kind(1, kMostNumber), "of the submission"),
       required("run", &Row::run, text_kind(1000), "its run"),
       required("verdict", &Row::verdict, verdict_kind(), "on it"),
       required("message", &Row::message, text_kind(), "what happened and what to do"),
       optional("same_as", &Row::same_as, integer_kind(0, kMostNumber),
                "number of an earlier submission with the same files, whose result it has; absent "
                "where there is none"),
       optional("same_kernels_as", &Row::same_kernels_as, integer_kind(0, kMostNumber),
                "number of the first submission of other files whose recording launches the same; "
                "absent where there is none")});
}

FieldTable<RefusedHandIn> refused_table() {
  using R = RefusedHandIn;
  return FieldTable<R>({required("name", &R::name, text_kind(4096), "of the file or folder"),
                        required("message", &R::message, text_kind(), "why it was not taken")});
}

const FieldTable<Printed>& judged_table() {
  static const FieldTable<Printed> table(
      {format_field<Printed>("kjudge-judged/1"),
       required("judged", &Printed::judged, list_kind(object_kind(row_table())),
                "what was judged now, in order"),
       required("refused", &Printed::refused, list_kind(object_kind(refused_table())),
                "what --from has that was refused and so has no number")});
  return table;
}

}  // namespace

Json judged_json(const JudgedQueue& done) {
  Printed printed{{}, done.refused};
  for (const auto& [identity, evaluation, same_as, same_kernels_as] : done.judged) {
    printed.judged.push_back({identity.number, identity.run, evaluation.verdict, evaluation.message,
                              same_as, same_kernels_as});
  }
  return Json{judged_table().write(printed)};
}

JsonFormat judged_json_format() { return json_format(judged_table()); }

}  // namespace kjudge
