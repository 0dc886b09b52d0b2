// SPDX-License-Identifier: Apache-2.0
#include "judge/records_json.h"

#include "score/result_json.h"

namespace kjudge {
namespace {

Kind<int> record_number() { return integer_kind(1, 1'000'000'000); }

// A record as its file has it, with its number before.
template <class T>
Kind<std::pair<int, T>> numbered_kind(const FieldTable<T>& table) {
  using P = std::pair<int, T>;
  std::vector<Field<P>> fields = {required("number", &P::first, record_number(), "of the record")};
  for (const Field<T>& field : table.fields()) {
    Field<P>& numbered = fields.emplace_back(field);
    numbered.read = [read = field.read](const JsonCursor& at, P& into) { read(at, into.second); };
    numbered.write = [write = field.write](const P& from) { return write(from.second); };
  }
  return object_kind(FieldTable<P>(std::move(fields)));
}

struct Recorded {
  int number = 0;
};

const FieldTable<Recorded>& recorded_table() {
  static const FieldTable<Recorded> table(
      {format_field<Recorded>("kjudge-recorded/1"),
       required("number", &Recorded::number, record_number(), "of the record that was made")});
  return table;
}

struct PrintedBars {
  Records<Bar> bars;
};

const FieldTable<PrintedBars>& bars_table() {
  static const FieldTable<PrintedBars> table(
      {format_field<PrintedBars>("kjudge-bars/1"),
       required("bars", &PrintedBars::bars, list_kind(numbered_kind(bar_table())),
                "that stand, in the order of their numbers")});
  return table;
}

struct PrintedInvalidations {
  Records<Invalidation> invalidations;
};

const FieldTable<PrintedInvalidations>& invalidations_table() {
  using I = PrintedInvalidations;
  static const FieldTable<I> table(
      {format_field<I>("kjudge-invalidations/1"),
       required("invalidations", &I::invalidations, list_kind(numbered_kind(invalidation_table())),
                "that stand, in the order of their numbers")});
  return table;
}

struct PrintedInvalidated {
  std::optional<int> number;
  std::vector<InvalidatedEvaluation> evaluations;
};

FieldTable<InvalidatedEvaluation> invalidated_evaluation_table() {
  using E = InvalidatedEvaluation;
  return FieldTable<E>(
      {required("submission", &E::submission, record_number(), "number of the submission"),
       required("evaluation", &E::evaluation, record_number(), "number of its evaluation"),
       required("id", &E::id, text_kind(), "UUID of the evaluation"),
       required("run", &E::run, text_kind(), "of the submission"),
       required("verdict", &E::verdict, verdict_kind(), "on it"),
       optional("play_off", &E::play_off, record_number(),
                "number of the play-off whose result this is, made of the recording of that "
                "evaluation; absent where it is the evaluation itself")});
}

const FieldTable<PrintedInvalidated>& invalidated_table() {
  using I = PrintedInvalidated;
  static const FieldTable<I> table(
      {format_field<I>("kjudge-invalidated/1"),
       optional("number", &I::number, record_number(), "of the record; absent of a preview"),
       required("evaluations", &I::evaluations,
                list_kind(object_kind(invalidated_evaluation_table())), "that do not count")});
  return table;
}

}  // namespace

Json recorded_json(int number) { return Json{recorded_table().write({number})}; }

Json bars_json(const Records<Bar>& bars) { return Json{bars_table().write({bars})}; }

Json invalidations_json(const Records<Invalidation>& invalidations) {
  return Json{invalidations_table().write({invalidations})};
}

Json invalidated_json(int number, const std::vector<InvalidatedEvaluation>& evaluations) {
  PrintedInvalidated printed{{}, evaluations};
  if (number > 0) printed.number = number;
  return Json{invalidated_table().write(printed)};
}

std::vector<JsonFormat> records_json_formats() {
  return {json_format(recorded_table()), json_format(bars_table()),
          json_format(invalidations_table()), json_format(invalidated_table())};
}

}  // namespace kjudge
