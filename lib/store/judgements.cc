// SPDX-License-Identifier: Apache-2.0
#include "store/judgements.h"

#include <algorithm>

#include "error.h"
#include "score/result_json.h"
#include "stats.h"

namespace kjudge {
namespace {

Kind<std::string> made_kind() { return line_kind(1, 40); }
Kind<int> record_number_kind() { return integer_kind(0, 1 << 30); }

Kind<std::string> shape_name_kind() {
  return matching_kind("a name of letters, digits, dots, underscores and dashes",
                       "[A-Za-z0-9][A-Za-z0-9._-]{0,63}");
}

const FieldTable<PlayOffMember>& member_table() {
  using M = PlayOffMember;
  static const FieldTable<M> table({
      required("submission", &M::submission, integer_kind(1, 1 << 30), "number of the submission"),
      required("evaluation", &M::evaluation, integer_kind(1, 1 << 30),
               "number of its evaluation, whose bundle was replayed"),
      required("id", &M::id, line_kind(1, 64), "UUID of the evaluation"),
      required("run", &M::run, line_kind(1, 200), "name of the run"),
  });
  return table;
}

}  // namespace

const FieldTable<Bar>& bar_table() {
  using B = Bar;
  static const FieldTable<B> table({
      format_field<B>("kjudge-bar/1"),
      optional("name", &B::name, line_kind(0, 200), "what is compared with"),
      optional(
          "variant", &B::variant,
          [] {
            // Absent in a record that removes a bar.
            auto kind = request_kind();
            const auto write = kind.write;
            kind.write = [write](const VariantRequest& variant) {
              return variant.challenge.empty() ? Json{std::string()} : write(variant);
            };
            return kind;
          }(),
          "CHALLENGE[@VERSION][:dtype[:gpu[:shape]]] that it is shown with"),
      optional("speedup", &B::speedup, number_kind(0, 1e9),
               "over the baseline; absent where only times are known"),
      optional("times_us", &B::times_us, map_kind(shape_name_kind(), number_kind(0, 1e12)),
               "microseconds by shape"),
      optional(
          "basis", &B::basis,
          word_kind<B::Basis>({{"claimed", B::Basis::claimed}, {"measured", B::Basis::measured}}),
          "whether the organizer measured it, or somebody says so"),
      optional("source", &B::source, line_kind(0, 500), "where the numbers are from"),
      optional("date", &B::date, line_kind(0, 40), "of when they are"),
      required("made", &B::made, made_kind(), "when this was recorded; UTC, RFC 3339"),
      optional("takes_back", &B::takes_back, record_number_kind(),
               "number of the bar that this one removes; then all but \"made\" is absent"),
  });
  return table;
}

bool is_of(const Bar& bar, const Terms& terms, const std::string& dtype, const std::string& shape) {
  const VariantRequest& of = bar.variant;
  return of.challenge == terms.challenge &&
         (of.version == 0 || of.version == terms.challenge_version) &&
         names_device(of.gpu, terms.arch, terms.device_kind) && of.dtype == dtype &&
         of.shape == shape;
}

std::optional<double> bar_speedup(const Bar& bar, const Score& score) {
  if (bar.speedup > 0) return bar.speedup;
  std::vector<double> speedups;
  for (const ShapeScore& shape : score.shapes) {
    const auto time = std::find_if(bar.times_us.begin(), bar.times_us.end(),
                                   [&](const auto& one) { return one.first == shape.name; });
    if (time == bar.times_us.end() || time->second <= 0) return std::nullopt;
    speedups.push_back(shape.baseline_ns / (1000 * time->second));
  }
  if (speedups.empty()) return std::nullopt;
  return geometric_mean(speedups);
}

const FieldTable<Invalidation>& invalidation_table() {
  using I = Invalidation;
  static const FieldTable<I> table({
      format_field<I>("kjudge-invalidation/1"),
      optional("selection", &I::selection, object_kind(selection_table()),
               "evaluations of which all of it holds do not count"),
      optional("reason", &I::reason, line_kind(0, 1000), "shown wherever they are"),
      required("made", &I::made, made_kind(), "when this was recorded; UTC, RFC 3339"),
      optional("takes_back", &I::takes_back, record_number_kind(),
               "number of the invalidation that this one takes back; then all but \"made\" is "
               "absent"),
  });
  return table;
}

std::vector<std::string> invalid_reasons(const Records<Invalidation>& standing,
                                         const Selectable& one) {
  std::vector<std::string> reasons;
  for (const auto& [number, record] : standing) {
    if (selects(record.selection, one)) reasons.push_back(record.reason);
  }
  return reasons;
}

std::set<std::string_view> invalid_ids(const Records<Invalidation>& standing,
                                       const ScoreIndex& index) {
  std::set<std::string_view> found;
  if (standing.empty()) return found;
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) {
      const auto reasons = invalid_reasons(standing, selectable(index, submission, one));
      if (!reasons.empty()) found.insert(one.id);
    }
  }
  return found;
}

const FieldTable<PlayOff>& play_off_table() {
  using P = PlayOff;
  static const FieldTable<P> table({
      format_field<P>("kjudge-playoff/1"),
      required("best", &P::best, object_kind(member_table()),
               "whose bundle was replayed in the baseline's place"),
      required("others", &P::others, list_kind(object_kind(member_table()), 0, 1000),
               "in the order of results/1.json, results/2.json and so on"),
      optional("absent", &P::absent, list_kind(object_kind(member_table()), 0, 1000),
               "that have no recording to replay: they stand below the others"),
      required("made", &P::made, made_kind(), "when it ended; UTC, RFC 3339"),
  });
  return table;
}

std::vector<PlayOffFacts> read_play_off_facts(const ResultsDirectory& results,
                                              const ResultsDirectory::Report& report) {
  std::vector<PlayOffFacts> found;
  for (const auto& [number, record] :
       read_records(results, kPlayOffRecord, play_off_table(), report)) {
    const auto folder = record_file(results.path(), kPlayOffRecord, number).parent_path();
    PlayOffFacts one{number, record, {}};
    try {
      for (std::size_t i = 1; i <= record.others.size(); ++i) {
        const auto path = folder / "results" / cat(i, ".json");
        one.results.push_back(result_from_json(read_file(path), path));
      }
      found.push_back(std::move(one));
    } catch (const Error& error) {
      report(error);
    }
  }
  return found;
}

Selectable selectable(const PlayOffMember& member, const Evaluation& facts) {
  SubmissionIdentity submission;
  submission.number = member.submission;
  Selectable found = selectable(submission, facts);
  found.run = member.run;
  return found;
}

std::vector<PlayedOff> read_play_offs(const ResultsDirectory& results,
                                      const Records<Invalidation>& invalidations,
                                      const ResultsDirectory::Report& report) {
  std::vector<PlayedOff> found;
  for (const auto& [number, record, facts] : read_play_off_facts(results, report)) {
    PlayedOff one{record.best.id, {}};
    bool valid = true;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const PlayOffMember& member = record.others[i];
      valid = valid && invalid_reasons(invalidations, selectable(member, facts[i])).empty();
      one.others.push_back({member.id, score(facts[i])});
    }
    for (const PlayOffMember& absent : record.absent) one.others.push_back({absent.id, {}});
    if (valid) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace kjudge
