// SPDX-License-Identifier: Apache-2.0
#include "store/rejudgement.h"

#include "error.h"
#include "score/result_json.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

const FieldTable<Rejudged>& rejudged_table() {
  using R = Rejudged;
  static const FieldTable<R> table({
      required("submission", &R::submission, integer_kind(1, 1 << 30), "number of the submission"),
      required("evaluation", &R::evaluation, integer_kind(1, 1 << 30),
               "number of its evaluation that is made again"),
      required("id", &R::id, line_kind(1, 64), "UUID of that evaluation"),
      required("run", &R::run, line_kind(1, 200), "name of the run"),
  });
  return table;
}

fs::path end_file(const fs::path& folder, RejudgementState state) {
  return folder / cat(name(state), ".json");
}

}  // namespace

std::string_view name(RejudgementState state) {
  return state == RejudgementState::open      ? "open"
         : state == RejudgementState::applied ? "applied"
                                              : "dropped";
}

const FieldTable<RejudgementEnd>& rejudgement_end_table() {
  static const FieldTable<RejudgementEnd> table({
      format_field<RejudgementEnd>("kjudge-rejudgement-end/1"),
      required("at", &RejudgementEnd::at, line_kind(1, 40), "UTC, RFC 3339"),
  });
  return table;
}

JsonFormat rejudgement_end_json_format() { return json_format(rejudgement_end_table()); }

const FieldTable<Rejudgement>& rejudgement_table() {
  using R = Rejudgement;
  static const FieldTable<R> table({
      format_field<R>("kjudge-rejudgement/1"),
      required("challenge", &R::challenge, line_kind(1, 100), "name of the challenge"),
      required("challenge_version", &R::challenge_version, integer_kind(1, 1'000'000),
               "its version"),
      required("selection", &R::selection, object_kind(selection_table()),
               "what the set was made of"),
      required("reason", &R::reason, line_kind(1, 1000), "why"),
      required("made", &R::made, line_kind(1, 40), "when the set was made; UTC, RFC 3339"),
      required("evaluations", &R::evaluations, list_kind(object_kind(rejudged_table()), 1),
               "one of each submission: the last that is in the selection"),
  });
  return table;
}

RejudgementSet::RejudgementSet(const ResultsDirectory& results, int number) : number_(number) {
  const fs::path file = record_file(results.path(), kRejudgementRecord, number);
  if (!fs::exists(file)) {
    throw Error(Fault::usage, cat(results.path().string(), ": there is no rejudgement ", number));
  }
  folder_ = file.parent_path();
  record_ = read_record(rejudgement_table(), file);
}

RejudgementState RejudgementSet::state() const {
  for (const auto state : {RejudgementState::applied, RejudgementState::dropped}) {
    if (fs::exists(end_file(folder_, state))) return state;
  }
  return RejudgementState::open;
}

void RejudgementSet::end(RejudgementState state) const {
  const RejudgementState now = this->state();
  if (now != RejudgementState::open && now != state) {
    throw Error(Fault::usage, cat("rejudgement ", number_, " was ", name(now), " before"));
  }
  sweep_unfinished(folder_);
  write_file_atomically(end_file(folder_, state),
                        print_json(Json{rejudgement_end_table().write({utc_now()})}),
                        IfExists::fail);
}

fs::path RejudgementSet::evaluation(int submission) const {
  return folder_ / "evaluations" / std::to_string(submission);
}

std::optional<Evaluation> RejudgementSet::result(int submission) const {
  const fs::path file = evaluation(submission) / "result.json";
  if (!fs::exists(file)) return std::nullopt;
  return result_from_json(read_file(file), file);
}

}  // namespace kjudge
