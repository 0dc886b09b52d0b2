// SPDX-License-Identifier: Apache-2.0
#include "judge/rank_json.h"

#include "judge/rank_report.h"
#include "score/result_json.h"
#include "score/scores_json.h"

namespace kjudge {
namespace {

struct RankedRow {
  int rank = 0, tie_group = 0;
  std::string run, submission;
  int evaluation = 1;
  double speedup = 0;
  Interval interval;
  int judged = 1;
  AboutEntry about;
  std::optional<double> behind;
  bool played_off = false;
};

struct BarRow {
  int number = 0;
  std::string name;
  Bar::Basis basis = Bar::Basis::claimed;
  std::optional<double> speedup;
  std::string source, date;
};

struct HistoryRow {
  std::string started;
  int submission = 0, evaluation = 0;
  std::string id;
  Verdict verdict = Verdict::judge_error;
  std::optional<double> speedup;
  std::optional<Interval> interval;
  VariantRequest variant;
  std::vector<std::string> invalid;
};

// Of what the ranking or the history is.
struct RankTitle {
  std::optional<std::string> challenge;
  std::optional<int> challenge_version;
  std::optional<std::string> arch, device_kind;
  std::optional<int> method;
  std::string dtype, shape, bounty;
  std::optional<double> target_us;
  std::vector<std::string> left_out;
};

struct RankDocument : RankTitle {
  std::vector<RankedRow> entries, pending;
  std::vector<BarRow> bars;
  std::vector<VariantStandings::Invalid> invalid;
  std::vector<VariantStandings::Partial> partial;
  std::vector<int> unverified;
};

struct HistoryDocument : RankTitle {
  std::string run;
  std::vector<HistoryRow> evaluations;
};

Kind<int> rank_number() { return integer_kind(1, 1'000'000'000); }

// A field of the RankedRow's `about`.
template <class V>
Field<RankedRow> about_field(std::string name, V AboutEntry::*member, Kind<V> kind,
                             std::string doc) {
  Field<RankedRow> field = printed_field<RankedRow, V>(
      std::move(name), [member](const RankedRow& row) { return row.about.*member; }, kind,
      std::move(doc));
  field.required = false;
  field.write = [=, write = kind.write](const RankedRow& row) -> std::optional<Json> {
    return row.about.*member == V{} ? std::nullopt : std::optional(write(row.about.*member));
  };
  return field;
}

std::vector<Field<RankedRow>> entry_fields() {
  using R = RankedRow;
  Field<R> met = printed_field<R, bool>(
      "target_met", [](const R& row) { return row.about.target_met.value_or(false); },
      boolean_kind(), "whether its time is within target_us; absent where there is none");
  met.required = false;
  met.write = [](const R& row) -> std::optional<Json> {
    if (!row.about.target_met) return std::nullopt;
    return Json{*row.about.target_met};
  };
  return {required("run", &R::run, text_kind(), "name of the run"),
          required("submission", &R::submission, text_kind(), "number of its best submission"),
          required("evaluation", &R::evaluation, rank_number(), "number of the one that counts"),
          required("speedup", &R::speedup, number_kind(), "its score"),
          required("interval", &R::interval, ends_kind(), "lower and upper end of the speedup"),
          required("judged", &R::judged, rank_number(), "how often the submission was"),
          about_field("label", &AboutEntry::label, text_kind(),
                      "what the submission says it is; absent: nothing"),
          met,
          about_field("code", &AboutEntry::code, text_kind(),
                      "its files in the results directory; absent where they are not shown"),
          about_field("license", &AboutEntry::license, text_kind(),
                      "of the code; absent where that is not shown, or has none")};
}

FieldTable<RankedRow> ranked_table() {
  using R = RankedRow;
  std::vector<Field<R>> fields = {
      required("rank", &R::rank, rank_number(), "from 1; those of a tie group share the best"),
      required("tie_group", &R::tie_group, rank_number(),
               "from 1: those whose intervals overlap that of the best of them")};
  for (Field<R>& field : entry_fields()) fields.push_back(std::move(field));
  fields.push_back(optional("behind", &R::behind, number_kind(),
                            "the share by which the one before is faster; absent of the first, and "
                            "where only a play-off put it before"));
  fields.push_back(optional("played_off", &R::played_off, boolean_kind(),
                            "the order within its former tie group is that of a play-off"));
  return FieldTable<R>(std::move(fields));
}

FieldTable<BarRow> bar_row_table() {
  using B = BarRow;
  return FieldTable<B>({required("number", &B::number, rank_number(), "of the record"),
                        required("name", &B::name, text_kind(), "such as a library or a paper"),
                        required("basis", &B::basis,
                                 word_kind<Bar::Basis>({{"claimed", Bar::Basis::claimed},
                                                        {"measured", Bar::Basis::measured}}),
                                 "who says so: measured by the organizer, or claimed by another"),
                        optional("speedup", &B::speedup, number_kind(),
                                 "over the baseline; absent where that is not known"),
                        required("source", &B::source, text_kind(), "where the numbers are from"),
                        required("date", &B::date, text_kind(), "of the numbers; may be empty")});
}

FieldTable<VariantStandings::Invalid> invalid_table() {
  using I = VariantStandings::Invalid;
  return FieldTable<I>(
      {required("submission", &I::submission, rank_number(), "number of the submission"),
       required("evaluation", &I::evaluation, rank_number(), "number of its evaluation"),
       required("run", &I::run, text_kind(), "its run"),
       required("reason", &I::reason, text_kind(), "why it does not count")});
}

FieldTable<VariantStandings::Partial> partial_table() {
  using P = VariantStandings::Partial;
  return FieldTable<P>(
      {required("submission", &P::submission, rank_number(), "number of the submission"),
       required("evaluation", &P::evaluation, rank_number(), "number of its evaluation"),
       required("run", &P::run, text_kind(), "its run"),
       required("variant", &P::variant, request_kind(), "that was asked for")});
}

FieldTable<HistoryRow> history_row_table() {
  using H = HistoryRow;
  return FieldTable<H>(
      {required("started", &H::started, text_kind(), "when it was judged, in UTC"),
       required("submission", &H::submission, rank_number(), "number of the submission"),
       required("evaluation", &H::evaluation, rank_number(), "number of its evaluation"),
       required("id", &H::id, text_kind(), "UUID of the evaluation"),
       required("verdict", &H::verdict, verdict_kind(), "on it"),
       optional("speedup", &H::speedup, number_kind(), "absent where it is not ranked"),
       optional("interval", &H::interval, ends_kind(),
                "lower and upper end of the speedup; absent where it is not ranked"),
       optional("variant", &H::variant, request_kind(),
                "the part of the challenge that was asked for; absent: all of it"),
       optional("invalid", &H::invalid, list_kind(text_kind()),
                "reasons why it does not count; absent: it does")});
}

template <class D>
std::vector<Field<D>> title_fields(const char* format) {
  using Text = std::string;
  return {
      format_field<D>(format),
      optional<D, Text>("challenge", &D::challenge, text_kind(),
                        "its name; absent, as the next four, where nothing has a score yet"),
      optional<D, int>("challenge_version", &D::challenge_version, rank_number(), "its version"),
      optional<D, Text>("arch", &D::arch, text_kind(), "of the device"),
      optional<D, Text>("device_kind", &D::device_kind, text_kind(), "the device without its UUID"),
      optional<D, int>("method", &D::method, rank_number(),
                       "number of the way in which kjudge measured"),
      optional<D, Text>("dtype", &D::dtype, text_kind(), "absent: of all dtypes"),
      optional<D, Text>("shape", &D::shape, text_kind(), "absent: over all shapes"),
      optional<D, Text>("bounty", &D::bounty, text_kind(),
                        "absent: none, or none over some of the shapes"),
      optional<D, double>("target_us", &D::target_us, number_kind(0),
                          "the challenge's target; absent where it has none, and over some of "
                          "the shapes"),
      optional<D, std::vector<Text>>("left_out", &D::left_out, list_kind(text_kind()),
                                     "what could not be read, and why; absent: nothing")};
}

const FieldTable<RankDocument>& rank_table() {
  using D = RankDocument;
  static const FieldTable<D> table([] {
    std::vector<Field<D>> fields = title_fields<D>("kjudge-rank/1");
    fields.push_back(required("entries", &D::entries, list_kind(object_kind(ranked_table())),
                              "runs with a rank, best first"));
    fields.push_back(required("pending", &D::pending,
                              list_kind(object_kind(FieldTable<RankedRow>(entry_fields()))),
                              "runs without one yet, best first"));
    fields.push_back(required("bars", &D::bars, list_kind(object_kind(bar_row_table())),
                              "what runs are compared with"));
    fields.push_back(required("invalid", &D::invalid, list_kind(object_kind(invalid_table())),
                              "evaluations that do not count"));
    fields.push_back(optional("partial", &D::partial, list_kind(object_kind(partial_table())),
                              "evaluations of another part of the challenge, which have no place "
                              "here; absent: none"));
    fields.push_back(optional("unverified", &D::unverified, list_kind(rank_number()),
                              "accepted submissions whose files were not to be kept, which are not "
                              "ranked; absent: none"));
    return fields;
  }());
  return table;
}

const FieldTable<HistoryDocument>& history_format_table() {
  using D = HistoryDocument;
  static const FieldTable<D> table([] {
    std::vector<Field<D>> fields = title_fields<D>("kjudge-history/1");
    fields.push_back(required("run", &D::run, text_kind(), "name of the run"));
    fields.push_back(required("evaluations", &D::evaluations,
                              list_kind(object_kind(history_row_table())),
                              "in the order they were judged"));
    return fields;
  }());
  return table;
}

void set_title(RankTitle& title, const VariantStandings& standings) {
  const Terms& terms = standings.terms;
  title.challenge = terms.challenge;
  title.challenge_version = terms.challenge_version;
  title.arch = terms.arch;
  title.device_kind = terms.device_kind;
  title.method = terms.method;
  title.dtype = standings.variant.dtype;
  title.shape = standings.variant.shape;
  title.bounty = bounty_of(standings);
  if (const auto target = target_of(standings)) title.target_us = *target / 1000;
}

RankedRow row_of(const Entry& entry, const VariantStandings& standings, const ScoreIndex& index) {
  RankedRow row;
  row.run = entry.run;
  row.submission = entry.submission;
  row.evaluation = entry.evaluation;
  row.speedup = entry.score.speedup;
  row.interval = entry.score.interval;
  row.judged = entry.judged;
  row.about = about_entry(entry, standings, index);
  return row;
}

}  // namespace

Json standings_json(const std::optional<VariantStandings>& standings, const ScoreIndex& index,
                    const std::vector<std::string>& left_out) {
  RankDocument document;
  document.left_out = left_out;
  if (!standings) return Json{rank_table().write(document)};
  set_title(document, *standings);
  const auto& ranked = standings->standings.ranked;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    RankedRow row = row_of(ranked[i].entry, *standings, index);
    row.rank = ranked[i].rank;
    row.tie_group = ranked[i].tie_group;
    if (i > 0) row.behind = behind(ranked[i - 1].entry.score, ranked[i].entry.score);
    row.played_off = ranked[i].played_off;
    document.entries.push_back(std::move(row));
  }
  for (const Entry& entry : standings->standings.pending) {
    document.pending.push_back(row_of(entry, *standings, index));
  }
  for (const auto& [number, bar] : standings->bars) {
    document.bars.push_back(
        {number, bar.name, bar.basis, speedup_of(bar, *standings), bar.source, bar.date});
  }
  document.invalid = standings->invalid;
  document.partial = standings->partial;
  document.unverified = standings->unverified;
  return Json{rank_table().write(document)};
}

JsonFormat standings_json_format() { return json_format(rank_table()); }

Json history_json(const VariantStandings& standings, const std::string& run,
                  const std::vector<HistoryEntry>& history,
                  const std::vector<std::string>& left_out) {
  HistoryDocument document;
  document.left_out = left_out;
  set_title(document, standings);
  document.run = run;
  for (const HistoryEntry& one : history) {
    HistoryRow row{
        one.started, one.submission, one.evaluation, one.id, one.verdict, {}, {}, one.variant, {}};
    if (one.score.ranked) {
      row.speedup = one.score.speedup;
      row.interval = one.score.interval;
    }
    row.invalid = one.invalid;
    document.evaluations.push_back(std::move(row));
  }
  return Json{history_format_table().write(document)};
}

JsonFormat history_json_format() { return json_format(history_format_table()); }

}  // namespace kjudge
