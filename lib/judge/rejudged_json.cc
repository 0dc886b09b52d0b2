// SPDX-License-Identifier: Apache-2.0
#include "judge/rejudged_json.h"

#include "score/result_json.h"
#include "score/scores_json.h"

namespace kjudge {
namespace {

struct SideScore {
  std::string id;
  Verdict verdict = Verdict::judge_error;
  std::optional<double> speedup;
  std::optional<Interval> interval;
};

struct SidesRow {
  int submission = 0, evaluation = 0;
  std::string run;
  VariantRequest variant;
  SideScore old;
  std::optional<SideScore> made;
  std::string left_out;
};

struct PrintedSet {
  int set = 0;
  RejudgementState state = RejudgementState::open;
  std::string reason;
  std::vector<SidesRow> evaluations;
};

struct PrintedSets {
  std::vector<ListedSet> sets;
};

Kind<int> set_number() { return integer_kind(1, 1'000'000'000); }

Kind<RejudgementState> state_kind() {
  using S = RejudgementState;
  std::vector<std::pair<std::string, S>> words;
  for (const S state : {S::open, S::applied, S::dropped}) words.emplace_back(name(state), state);
  return word_kind<S>(words);
}

Kind<SideScore> side_kind() {
  using S = SideScore;
  return object_kind(FieldTable<S>(
      {required("id", &S::id, text_kind(), "UUID of the evaluation"),
       required("verdict", &S::verdict, verdict_kind(), "on the submission"),
       optional("speedup", &S::speedup, number_kind(), "absent where it is not ranked"),
       optional("interval", &S::interval, ends_kind(),
                "lower and upper end of the speedup; absent where it is not ranked")}));
}

// null: there is none yet.
Kind<std::optional<SideScore>> side_or_null_kind() {
  const Kind<SideScore> side = side_kind();
  const Json null{Json::Object{{"type", Json{std::string("null")}}}};
  Kind<std::optional<SideScore>> kind;
  kind.expected = "an object, or null";
  kind.schema = Json{Json::Object{{"anyOf", Json{Json::List{side.schema, null}}}}};
  kind.fields = side.fields;
  kind.read = [read = side.read](const JsonCursor& at) -> std::optional<SideScore> {
    if (at.get_if<std::nullptr_t>() != nullptr) return std::nullopt;
    return read(at);
  };
  kind.write = [write = side.write](const std::optional<SideScore>& score) {
    return score ? write(*score) : Json{nullptr};
  };
  return kind;
}

const FieldTable<PrintedSet>& printed_set_table() {
  using R = SidesRow;
  using S = PrintedSet;
  // Not required(), which takes a std::optional for a field that may be absent.
  Field<R> made = printed_field<R, std::optional<SideScore>>(
      "new", [](const R& row) { return row.made; }, side_or_null_kind(),
      "the new evaluation; null where it is not made yet");
  static const FieldTable<S> table(
      {format_field<S>("kjudge-rejudged/1"),
       required("set", &S::set, set_number(), "number of the set"),
       required("state", &S::state, state_kind(), "whether the new evaluations count"),
       required("reason", &S::reason, text_kind(), "why the set was made"),
       required(
           "evaluations", &S::evaluations,
           list_kind(object_kind(FieldTable<R>(
               {required("submission", &R::submission, set_number(), "its number"),
                required("evaluation", &R::evaluation, set_number(), "that is made again"),
                required("run", &R::run, text_kind(), "of the submission"),
                optional("variant", &R::variant, request_kind(),
                         "the part of the challenge that was asked for; absent: all of it"),
                required("old", &R::old, side_kind(), "the evaluation that is made again"), made,
                optional("left_out", &R::left_out, text_kind(),
                         "why it cannot be made again; absent where it can")}))),
           "one of each submission")});
  return table;
}

const FieldTable<PrintedSets>& printed_sets_table() {
  using L = ListedSet;
  using S = PrintedSets;
  static const FieldTable<S> table(
      {format_field<S>("kjudge-rejudgements/1"),
       required("sets", &S::sets,
                list_kind(object_kind(FieldTable<L>(
                    {required("set", &L::set, set_number(), "number of the set"),
                     required("made", &L::made, text_kind(), "when, in UTC"),
                     required("state", &L::state, state_kind(), "whether its evaluations count"),
                     required("evaluations", &L::evaluations,
                              integer_kind<std::size_t>(0, 1'000'000'000), "how many it is of"),
                     required("reason", &L::reason, text_kind(), "why it was made")}))),
                "in the order of their numbers")});
  return table;
}

SideScore side_of(const Evaluation& evaluation) {
  SideScore side{evaluation.id, evaluation.verdict, {}, {}};
  const Score scored = score(evaluation);
  if (scored.counts) {
    side.speedup = scored.speedup;
    side.interval = scored.interval;
  }
  return side;
}

}  // namespace

Json rejudged_json(const RejudgementSet& set, const std::vector<RejudgedPair>& pairs) {
  PrintedSet printed{set.number(), set.state(), set.record().reason, {}};
  for (const auto& [what, old, made, left_out] : pairs) {
    SidesRow row{what.submission, what.evaluation, what.run, old.variant, side_of(old), {},
                 left_out};
    if (made) row.made = side_of(*made);
    printed.evaluations.push_back(std::move(row));
  }
  return Json{printed_set_table().write(printed)};
}

Json rejudgements_json(const std::vector<ListedSet>& sets) {
  return Json{printed_sets_table().write({sets})};
}

std::vector<JsonFormat> rejudged_json_formats() {
  return {json_format(printed_set_table()), json_format(printed_sets_table())};
}

}  // namespace kjudge
