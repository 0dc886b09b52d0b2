// SPDX-License-Identifier: Apache-2.0
#include "store/standings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "error.h"
#include "file_names.h"
#include "store/challenges.h"

namespace kjudge {
namespace {

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += cat(text.empty() ? "" : ", ", word);
  return text;
}

// When an evaluation began, and its number, for several may in one second.
using Begun = std::tuple<std::string_view, int, int>;

// The newest evaluation of each of the index's terms; without those that it has none of any more.
std::map<const Terms*, Begun> newest_by_terms(const ScoreIndex& index) {
  std::map<const Terms*, Begun> newest;
  for (const ScoredSubmission& submission : index.submissions()) {
    for (const ScoredEvaluation& one : submission.evaluations) {
      Begun& begun = newest[one.terms.get()];
      begun = std::max(begun, Begun{one.started, submission.number, one.number});
    }
  }
  return newest;
}

// Which of the index's terms a ranking is of; null: of none.
const Terms* choose_terms(const ScoreIndex& index, const VariantRequest& request) {
  const auto newest = newest_by_terms(index);
  const auto fits = [&](const Terms& terms) {
    // Without an arch the judge failed before there was a device.
    return newest.contains(&terms) && !terms.arch.empty() &&
           (request.challenge.empty() || terms.challenge == request.challenge) &&
           (request.version == 0 || terms.challenge_version == request.version) &&
           names_device(request.gpu, terms.arch, terms.device_kind);
  };
  const Terms* chosen = nullptr;
  std::set<std::string> kinds;
  for (const auto& terms : index.all_terms()) {
    if (!fits(*terms)) continue;
    kinds.insert(device_word(terms->device_kind));
    if (chosen == nullptr || newest.at(chosen) < newest.at(terms.get())) chosen = terms.get();
  }
  if (!request.gpu.empty() && kinds.size() > 1) {
    throw Error(Fault::usage, cat("\"", request.gpu,
                                  "\" names several kinds of GPU, which are "
                                  "never ranked in one table: say ",
                                  joined(kinds)));
  }
  return chosen;
}

std::vector<std::string> shapes_of(const VariantStandings& found, const VariantRequest& request) {
  if (request.all_shapes()) return {};
  if (!found.challenge) {
    if (!request.dtype.empty()) {
      throw Error(
          Fault::usage,
          cat("challenge ", found.terms.challenge, " version ", found.terms.challenge_version,
              " is not kept in this results directory, so nobody knows the dtypes of "
              "its shapes; leave the dtype empty, or judge with it once"));
    }
    return {request.shape};
  }
  return timed_shapes(*found.challenge, request);
}

std::string terms_text(const Terms& terms) {
  return cat(terms.challenge, "@", terms.challenge_version, "::", device_word(terms.device_kind),
             " (method ", terms.method, ")");
}

Score score_over(const ScoreIndex& index, const ScoredEvaluation& evaluation,
                 const std::vector<std::string>& shapes) {
  Score score = index.score_of(evaluation);
  return shapes.empty() ? score : part_of(score, shapes);
}

}  // namespace

StandingsSource read_source(const ResultsDirectory& results, const ScoreIndex& index,
                            const ResultsDirectory::Report& report) {
  auto invalidations =
      standing(read_records(results, kInvalidationRecord, invalidation_table(), report));
  auto play_offs = read_play_offs(results, invalidations, report);
  return {results, index, std::move(invalidations),
          standing(read_records(results, kBarRecord, bar_table(), report)), std::move(play_offs)};
}

void require_known(const ResultsDirectory& results, const ScoreIndex& index,
                   const VariantRequest& request) {
  std::map<std::string, std::set<int>> versions;  // of each challenge
  std::set<std::string> kinds;                    // of devices that judged it
  for (const Challenge& one : kept_challenges(results)) versions[one.name].insert(one.version);
  for (const ScoredSubmission& submission : index.submissions()) {
    if (submission.challenge != kAllChallenges && !submission.challenge.empty()) {
      versions.try_emplace(submission.challenge);
    }
    for (const ScoredEvaluation& one : submission.evaluations) {
      const Terms& terms = *one.terms;
      versions[terms.challenge].insert(terms.challenge_version);
      if (terms.challenge != request.challenge || terms.arch.empty()) continue;
      kinds.insert(names_device(request.gpu, terms.arch, terms.device_kind)
                       ? request.gpu
                       : device_word(terms.device_kind));
    }
  }
  if (request.challenge.empty() || versions.empty()) return;
  std::set<std::string> there;
  const auto known = versions.find(request.challenge);
  if (known == versions.end()) {
    for (const auto& [name, numbers] : versions) there.insert(name);
    throw Error(Fault::usage,
                cat("\"", request.challenge, "\": nothing here is for such a challenge; there is ",
                    joined(there)));
  }
  if (request.version != 0 && !known->second.empty() && !known->second.contains(request.version)) {
    for (const int number : known->second) there.insert(std::to_string(number));
    throw Error(Fault::usage, cat(request.challenge, "@", request.version,
                                  ": nothing here is of this version; there is ", joined(there)));
  }
  if (!request.gpu.empty() && !kinds.empty() && !kinds.contains(request.gpu)) {
    throw Error(Fault::usage, cat("\"", request.gpu, "\": nothing of ", request.challenge,
                                  " was judged on such a GPU; it was on ", joined(kinds)));
  }
}

std::optional<VariantStandings> make_standings(const StandingsSource& source,
                                               const std::optional<VariantRequest>& request) {
  const ScoreIndex& index = source.index;
  VariantStandings found;
  found.variant = request.value_or(VariantRequest{});
  const Terms* const chosen = choose_terms(index, found.variant);
  if (chosen == nullptr) {
    require_known(source.results, index, found.variant);
    return std::nullopt;
  }
  found.terms = *chosen;
  found.challenge = kept_challenge(source.results, found.terms);
  found.shapes = shapes_of(found, found.variant);
  found.variant.challenge = found.terms.challenge;
  found.variant.version = found.terms.challenge_version;
  found.variant.gpu = device_word(found.terms.device_kind);

  std::vector<Candidate> candidates;
  std::vector<const ScoredEvaluation*> evaluations;
  std::set<const Terms*> others;
  for (const ScoredSubmission& submission : index.submissions()) {
    bool here = false;
    for (const ScoredEvaluation& one : submission.evaluations) {
      if (one.terms.get() != chosen) {
        others.insert(one.terms.get());
        continue;
      }
      if (!submission.identity.keep && !here && one.verdict == Verdict::accepted) {
        found.unverified.push_back(submission.number);
      }
      here = true;
      const auto reasons =
          source.invalidations.empty()
              ? std::vector<std::string>()
              : invalid_reasons(source.invalidations, selectable(index, submission, one));
      for (const std::string& reason : reasons) {
        found.invalid.push_back({submission.number, one.number, submission.identity.run, reason});
      }
      Candidate& candidate = candidates.emplace_back();
      candidate = {submission.number,
                   one.number,
                   submission.identity.run,
                   one.id,
                   one.ranked,
                   !reasons.empty(),
                   one.speedup,
                   one.started,
                   submission.identity.sha256,
                   submission.identity.variant.dtype,
                   submission.identity.variant.shape};
      evaluations.push_back(&one);
      if (!one.counts || (found.shapes.empty() && one.ranked)) continue;
      const Score part = score_over(index, one, found.shapes);
      candidate.ranked = part.ranked;
      candidate.speedup = part.speedup;
      if (!part.ranked && reasons.empty()) {
        found.partial.push_back(
            {submission.number, one.number, submission.identity.run, one.variant});
      }
    }
    found.left_out += !here && !submission.evaluations.empty() ? 1 : 0;
  }
  for (const auto& terms : index.all_terms()) {
    if (!others.contains(terms.get()) || terms->arch.empty()) continue;
    found.elsewhere.push_back(terms_text(*terms));
  }

  std::vector<Entry> entries;
  for (const Chosen& best : choose_best(candidates)) {
    const Candidate& candidate = candidates[best.candidate];
    entries.push_back({std::to_string(candidate.submission), std::string(candidate.run),
                       score_over(index, *evaluations[best.candidate], found.shapes),
                       candidate.evaluation, std::string(candidate.id), best.judged});
  }
  std::vector<PlayedOff> play_offs = source.play_offs;
  if (!found.shapes.empty()) {
    for (PlayedOff& play_off : play_offs) {
      for (PlayedOff::Other& other : play_off.others) {
        other.score = part_of(other.score, found.shapes);
      }
    }
  }
  KeptChallenges kept(source.results);
  const auto challenge_of = [&kept](const Terms& terms) { return kept.of(terms); };
  for (const Entry& entry : entries) {
    const ScoredSubmission& submission = *index.find(std::stoi(entry.submission));
    if (may_publish(submission, challenge_of)) found.open.insert(submission.number);
  }
  found.standings = rank(std::move(entries), play_offs);
  for (const auto& [number, bar] : source.bars) {
    if (is_of(bar, found.terms, found.variant.dtype, found.variant.shape))
      found.bars.emplace_back(number, bar);
  }
  return found;
}

bool is_whole(const Challenge& challenge, const std::string& arch,
              const std::vector<std::string>& shapes) {
  const auto timed =
      std::count_if(challenge.shapes.begin(), challenge.shapes.end(),
                    [&](const Shape& shape) { return shape.timed && runs_on(shape, arch); });
  return shapes.empty() || static_cast<std::ptrdiff_t>(shapes.size()) == timed;
}

std::vector<RankedPart> ranked_parts(const Challenge* challenge, const std::string& arch,
                                     const std::set<std::string>& asked) {
  std::map<std::string, std::vector<std::string>> by_dtype;
  if (challenge != nullptr) {
    for (const Shape& shape : challenge->shapes) {
      if (shape.timed && runs_on(shape, arch)) by_dtype[shape.dtype].push_back(shape.name);
    }
  }
  std::vector<RankedPart> parts;
  if (by_dtype.size() > 1) {
    for (auto& [dtype, shapes] : by_dtype) parts.push_back({dtype, "", std::move(shapes)});
  }
  for (const std::string& shape : asked) parts.push_back({"", shape, {shape}});
  return parts;
}

std::vector<HistoryEntry> history_of(const StandingsSource& source,
                                     const VariantStandings& standings, const std::string& run) {
  const ScoreIndex& index = source.index;
  std::vector<HistoryEntry> history;
  for (const ScoredSubmission& submission : index.submissions()) {
    if (!same_name(submission.identity.run, run)) continue;
    for (const ScoredEvaluation& one : submission.evaluations) {
      if (index.terms(one) != standings.terms) continue;
      history.push_back(
          {submission.number, one.number, one.id, one.started, one.verdict,
           score_over(index, one, standings.shapes), one.variant,
           invalid_reasons(source.invalidations, selectable(index, submission, one))});
    }
  }
  std::stable_sort(
      history.begin(), history.end(),
      [](const HistoryEntry& a, const HistoryEntry& b) { return a.started < b.started; });
  return history;
}

bool may_publish(const Challenge& challenge, const SubmissionIdentity& submission,
                 const SubmissionNotes& notes) {
  if (!submission.keep || !submission.publish) return false;
  switch (challenge.publish) {
    case PublishCode::never:
      return false;
    case PublishCode::licensed:
      return !notes.license.empty();
    case PublishCode::all:
      return true;
  }
  return false;
}

bool may_publish(const ScoredSubmission& submission,
                 const std::function<const Challenge*(const Terms&)>& challenge_of) {
  return std::all_of(submission.evaluations.begin(), submission.evaluations.end(),
                     [&](const ScoredEvaluation& one) {
                       const Challenge* challenge = challenge_of(*one.terms);
                       return challenge != nullptr &&
                              may_publish(*challenge, submission.identity, submission.notes);
                     });
}

}  // namespace kjudge
