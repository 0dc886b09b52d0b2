// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>

#include "error.h"
#include "store/index.h"
#include "store/terms.h"
#include "store/variant_request.h"
#include "web/site.h"

namespace kjudge {
namespace {

// An evaluation that may be on a leaderboard.
struct Contender {
  const SubmissionSummary* submission = nullptr;
  const EvaluationSummary* evaluation = nullptr;
  const Score* score = nullptr;
};

LeaderboardRow row_of(const Contender& contender) {
  LeaderboardRow row;
  row.key = {contender.submission->stored.identity.number, contender.evaluation->number};
  row.submission = contender.submission;
  row.evaluation = contender.evaluation;
  return row;
}

std::string address_of(const Variant& variant) {
  std::string address =
      cat("leaderboard/", address_part(variant.challenge), "-", variant.version, "-",
          address_part(variant.sha256.substr(0, 8)), "-", address_part(variant.arch));
  if (variant.device_kind != variant.arch)
    address += cat("-", address_part(device_word(variant.device_kind)));
  address += cat("-m", variant.method);
  if (!variant.dtype.empty()) address += cat("-", address_part(variant.dtype));
  return address + ".html";
}

// The play-offs as they went over the shapes of this score.
std::vector<PlayedOff> over_shapes_of(const Score& score, std::vector<PlayedOff> play_offs) {
  std::vector<std::string> names;
  for (const ShapeScore& shape : score.shapes) names.push_back(shape.name);
  for (PlayedOff& play_off : play_offs) {
    for (PlayedOff::Other& other : play_off.others) other.score = part_of(other.score, names);
  }
  return play_offs;
}

Leaderboard make_leaderboard(const Site& site, const Variant& variant,
                             const std::vector<Contender>& contenders) {
  Leaderboard board;
  board.variant = variant;
  board.address = address_of(variant);
  const Terms terms{variant.challenge, variant.version,     variant.sha256,
                    variant.arch,      variant.device_kind, variant.method};
  for (const auto& [number, bar] : site.bars) {
    if (is_of(bar, terms, variant.dtype, "")) board.bars.emplace_back(number, bar);
  }
  const Challenge* challenge = site.challenge(variant.challenge, variant.version);
  if (challenge != nullptr && challenge->sha256 == variant.sha256) {
    board.target_ns = challenge->target_ns;
  }

  std::vector<Candidate> candidates;
  std::map<std::string, Contender> newest;  // by run
  std::map<int, const Contender*> counts;   // the last valid one, by submission
  for (const Contender& contender : contenders) {
    const auto& [submission, evaluation, score] = contender;
    const std::string& run = submission->stored.identity.run;
    newest[run] = contender;
    candidates.push_back({submission->stored.identity.number, evaluation->number, run,
                          evaluation->facts.id, score->ranked, !evaluation->invalid.empty(),
                          score->speedup});
    if (evaluation->invalid.empty()) counts[submission->stored.identity.number] = &contender;
  }
  for (const auto& [number, contender] : counts) {
    const auto& [submission, evaluation, score] = *contender;
    const auto time = seconds_of(evaluation->facts.started);
    if (!score->ranked || !time) continue;
    board.history.push_back(
        {*time, score->speedup, row_of(*contender).key, submission->stored.identity.run});
  }
  std::map<std::string, const Contender*> best;  // by run
  std::vector<Entry> entries;
  for (const Chosen& chosen : choose_best(candidates)) {
    const Contender& contender = contenders[chosen.candidate];
    const SubmissionIdentity& identity = contender.submission->stored.identity;
    best[identity.run] = &contender;
    entries.push_back({std::to_string(identity.number), identity.run, *contender.score,
                       contender.evaluation->number, contender.evaluation->facts.id,
                       chosen.judged});
  }
  const auto play_offs = entries.empty() || site.play_offs.empty()
                             ? std::vector<PlayedOff>()
                             : over_shapes_of(entries.front().score, site.play_offs);
  Standings standings = rank(std::move(entries), play_offs);
  for (RankedEntry& ranked : standings.ranked) {
    LeaderboardRow row = row_of(*best.at(ranked.entry.run));
    row.ranked = std::move(ranked);
    board.rows.push_back(std::move(row));
  }
  for (Entry& entry : standings.pending) {
    LeaderboardRow row = row_of(*best.at(entry.run));
    row.ranked.entry = std::move(entry);
    board.pending.push_back(std::move(row));
  }
  for (const auto& [run, contender] : newest) {
    if (!best.contains(run)) board.others.push_back(row_of(contender));
  }
  std::stable_sort(
      board.history.begin(), board.history.end(),
      [](const HistoryPoint& a, const HistoryPoint& b) { return a.time_s < b.time_s; });
  return board;
}

}  // namespace

Variant variant_of(const Evaluation& facts) {
  return {facts.challenge,
          facts.challenge_version,
          facts.challenge_sha256,
          facts.arch,
          device_kind(facts.arch, facts.device),
          facts.method,
          {}};
}

std::string variant_name(const Variant& variant) {
  return variant.dtype.empty() ? variant.device_kind
                               : cat(variant.device_kind, ", ", variant.dtype);
}

std::vector<Leaderboard> make_leaderboards(const Site& site) {
  std::map<Variant, std::vector<Contender>> found;
  std::map<Variant, std::string> started;  // of the newest evaluation
  for (const SubmissionSummary& submission : site.submissions) {
    for (const EvaluationSummary& evaluation : submission.evaluations) {
      // A judge error before there was a device has no arch.
      if (evaluation.facts.arch.empty()) continue;
      Variant variant = variant_of(evaluation.facts);
      const auto add = [&](const Score& score) {
        found[variant].push_back({&submission, &evaluation, &score});
        started[variant] = std::max(started[variant], evaluation.facts.started);
      };
      add(evaluation.score);
      for (const auto& [dtype, score] : evaluation.dtype_scores) {
        variant.dtype = dtype;
        add(score);
      }
    }
  }
  std::vector<Leaderboard> boards;
  for (const auto& [variant, contenders] : found)
    boards.push_back(make_leaderboard(site, variant, contenders));
  std::stable_sort(boards.begin(), boards.end(), [&](const Leaderboard& a, const Leaderboard& b) {
    return started.at(a.variant) > started.at(b.variant);
  });
  return boards;
}

std::optional<double> seconds_of(const std::string& time) {
  // The reader of results has checked its form; not that there is such a day.
  if (time.size() < 20) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t size) {
    int value = -1;
    std::from_chars(time.data() + at, time.data() + at + size, value);
    return value;
  };
  using namespace std::chrono;
  const year_month_day day(year(number(0, 4)), month(static_cast<unsigned>(number(5, 2))),
                           std::chrono::day(static_cast<unsigned>(number(8, 2))));
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (number(0, 4) < 1 || !day.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60) {
    return std::nullopt;
  }
  return 86'400.0 * sys_days(day).time_since_epoch().count() + 3600.0 * hour + 60.0 * minute +
         second;
}

}  // namespace kjudge
