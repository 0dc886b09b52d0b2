// SPDX-License-Identifier: Apache-2.0
#include "store/pruning.h"

#include <fcntl.h>

#include <charconv>
#include <ctime>
#include <map>
#include <set>
#include <vector>

#include "error.h"
#include "file.h"
#include "score/rank.h"
#include "sha256.h"
#include "store/blobs.h"
#include "store/judgements.h"
#include "store/rejudgement.h"
#include "store/running.h"
#include "store/score_index.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "pruned.json";
constexpr int kMostDays = 100'000;

std::string text_of(const KeepBundles& keep) {
  if (keep.rule == KeepBundles::Rule::days) return std::to_string(keep.days);
  return keep.rule == KeepBundles::Rule::best ? "best" : "all";
}

// As times are written, they are in the order of their text.
std::string days_before(const std::string& now, int days) {
  std::tm parts{};
  if (::strptime(now.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) {
    throw Error(Fault::bug, cat(now, ": no time"));
  }
  const std::time_t before = ::timegm(&parts) - std::time_t{86400} * days;
  ::gmtime_r(&before, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

using SubmissionTerms = std::pair<int, const Terms*>;

// Whose recordings play-offs and new methods need first. All evaluations of the submission on the
// same terms, for any of them may turn out invalid.
std::set<SubmissionTerms> best_of_runs(const ScoreIndex& index,
                                       const Records<Invalidation>& invalidations) {
  // What was judged for a part of the challenge is ranked among its like.
  std::map<std::pair<const Terms*, std::string>, std::vector<Candidate>> by_terms;
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) {
      const bool invalid =
          !invalidations.empty() &&
          !invalid_reasons(invalidations, selectable(index, submission, one)).empty();
      by_terms[{one.terms.get(), request_text(one.variant)}].push_back(
          {submission.number, one.number, submission.identity.run, one.id, one.counts, invalid,
           one.speedup, one.started, submission.identity.sha256, submission.identity.variant.dtype,
           submission.identity.variant.shape});
    }
  }
  std::set<SubmissionTerms> best;
  for (const auto& [terms, candidates] : by_terms) {
    for (const Chosen& chosen : choose_best(candidates)) {
      best.emplace(candidates[chosen.candidate].submission, terms.first);
    }
  }
  return best;
}

std::set<std::pair<int, int>> being_rejudged(const ResultsDirectory& results,
                                             const ResultsDirectory::Report& report) {
  std::set<std::pair<int, int>> found;
  for (const auto& [number, record] :
       read_records(results, kRejudgementRecord, rejudgement_table(), report)) {
    if (RejudgementSet(results, number).state() != RejudgementState::open) continue;
    for (const Rejudged& one : record.evaluations) found.emplace(one.submission, one.evaluation);
  }
  return found;
}

}  // namespace

KeepBundles parse_keep_bundles(std::string_view text) {
  if (text == "all") return {};
  if (text == "best") return {KeepBundles::Rule::best, 0};
  KeepBundles keep{KeepBundles::Rule::days, 0};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), keep.days);
  if (error != std::errc() || end != text.data() + text.size() || keep.days < 1 ||
      keep.days > kMostDays) {
    throw Error(Fault::usage,
                cat("keep bundles \"", text,
                    "\": expected all, best, or a number of days from 1 to ", kMostDays));
  }
  return keep;
}

const FieldTable<PrunedBundle>& pruned_table() {
  using P = PrunedBundle;
  static const FieldTable<P> table({
      format_field<P>("kjudge-pruned/1"),
      required("sha256", &P::sha256, hexadecimal_kind(64),
               "of the recording, as the result has it"),
      required("bytes", &P::bytes, integer_kind<std::uint64_t>(0, std::uint64_t{1} << 53),
               "its size"),
      required("pruned", &P::pruned, line_kind(1, 40), "when it was removed; UTC, RFC 3339"),
      required("rule", &P::rule, line_kind(1, 40),
               "what was to be kept: \"best\", or a number of days"),
  });
  return table;
}

std::optional<PrunedBundle> read_pruned(const fs::path& evaluation) {
  const std::string path = (evaluation / kMark).string();
  if (!fs::exists(path)) return std::nullopt;
  const Json json = parse_json(read_file(path, 1u << 16), path, Fault::malformed);
  return pruned_table().read(JsonCursor(json, path, Fault::malformed));
}

PrunedCounts prune_bundles(const ResultsDirectory& results, const KeepBundles& keep,
                           const std::string& now, const ResultsDirectory::Report& report) {
  PrunedCounts counts;
  if (keep.rule == KeepBundles::Rule::all) return counts;
  const bool by_age = keep.rule == KeepBundles::Rule::days;
  const std::string since = by_age ? days_before(now, keep.days) : "";
  ScoreIndex index(results, report);
  index.save();
  const auto best = best_of_runs(
      index, standing(read_records(results, kInvalidationRecord, invalidation_table(), report)));
  const auto rejudged = being_rejudged(results, report);
  for (const ScoredSubmission& submission : index.submissions()) {
    const fs::path folder = results.path() / "submissions" / std::to_string(submission.number);
    for (const ScoredEvaluation& one : submission.evaluations) {
      if (best.contains({submission.number, one.terms.get()}) ||
          rejudged.contains({submission.number, one.number}) || (by_age && one.started >= since)) {
        continue;
      }
      const fs::path evaluation = folder / "evaluations" / std::to_string(one.number);
      const fs::path bundle = evaluation / "bundle.kjb";
      std::error_code error;
      const auto bytes = fs::file_size(bundle, error);
      if (error || is_judged(folder)) continue;
      try {
        const Fd file(::open(bundle.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (!file.valid()) throw_errno(bundle.string());
        const std::string sha256 = sha256_of_file(file.get(), bundle.string());
        sweep_unfinished(evaluation);  // of a judge that was killed at this
        // The mark is first: there is never neither.
        write_file_atomically(
            evaluation / kMark,
            print_json(Json{pruned_table().write({sha256, bytes, now, text_of(keep)})}));
        remove_shared(results.path(), bundle);
      } catch (const Error& problem) {
        report(problem);
        continue;
      }
      ++counts.bundles;
      counts.bytes += bytes;
    }
  }
  return counts;
}

}  // namespace kjudge
