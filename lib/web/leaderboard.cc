// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>

#include "error.h"
#include "web/site.h"

namespace kjudge {
namespace {

struct Candidate {
  const SubmissionSummary* submission = nullptr;
  const EvaluationSummary* evaluation = nullptr;
  const Score* score = nullptr;
};

LeaderboardRow row_of(const Candidate& candidate) {
  LeaderboardRow row;
  row.key = {candidate.submission->stored.identity.number, candidate.evaluation->number};
  row.submission = candidate.submission;
  row.evaluation = candidate.evaluation;
  return row;
}

Leaderboard make_leaderboard(const Variant& variant, const std::vector<Candidate>& candidates) {
  Leaderboard board;
  board.variant = variant;
  board.address = cat("leaderboard/", address_part(variant.challenge), "-", variant.version, "-",
                      address_part(variant.sha256.substr(0, 8)), "-", address_part(variant.arch),
                      "-m", variant.method);
  if (!variant.dtype.empty()) board.address += cat("-", address_part(variant.dtype));
  board.address += ".html";

  std::map<std::string, Candidate> best, newest;  // by run
  std::vector<Entry> entries;
  for (const Candidate& candidate : candidates) {
    const std::string& run = candidate.submission->stored.identity.run;
    newest[run] = candidate;
    if (!candidate.score->ranked) continue;
    const auto [at, first] = best.try_emplace(run, candidate);
    if (!first && candidate.score->speedup > at->second.score->speedup) at->second = candidate;
    if (const auto time = seconds_of(candidate.evaluation->facts.started)) {
      board.history.push_back({*time, candidate.score->speedup, row_of(candidate).key, run});
    }
  }
  for (const auto& [run, candidate] : best) {
    entries.push_back(
        {std::to_string(candidate.submission->stored.identity.number), run, *candidate.score});
  }
  for (RankedEntry& ranked : rank(std::move(entries))) {
    LeaderboardRow row = row_of(best.at(ranked.entry.run));
    row.ranked = std::move(ranked);
    board.rows.push_back(std::move(row));
  }
  for (const auto& [run, candidate] : newest) {
    if (!best.contains(run)) board.others.push_back(row_of(candidate));
  }
  std::stable_sort(
      board.history.begin(), board.history.end(),
      [](const HistoryPoint& a, const HistoryPoint& b) { return a.time_s < b.time_s; });
  return board;
}

}  // namespace

std::string variant_name(const Variant& variant) {
  return variant.dtype.empty() ? variant.arch : cat(variant.arch, ", ", variant.dtype);
}

std::vector<Leaderboard> make_leaderboards(const Site& site) {
  std::map<Variant, std::vector<Candidate>> found;
  std::map<Variant, std::string> started;  // of the newest evaluation
  for (const SubmissionSummary& submission : site.submissions) {
    if (submission.evaluations.empty()) continue;
    const EvaluationSummary& evaluation = submission.evaluations.back();
    const Evaluation& facts = evaluation.facts;
    if (facts.arch.empty()) continue;  // a judge error before there was a device
    Variant variant{facts.challenge,        facts.challenge_version,
                    facts.challenge_sha256, facts.arch,
                    facts.method,           {}};
    const auto add = [&](const Score& score) {
      found[variant].push_back({&submission, &evaluation, &score});
      started[variant] = std::max(started[variant], facts.started);
    };
    add(evaluation.score);
    for (const auto& [dtype, score] : evaluation.dtype_scores) {
      variant.dtype = dtype;
      add(score);
    }
  }
  std::vector<Leaderboard> boards;
  for (const auto& [variant, candidates] : found)
    boards.push_back(make_leaderboard(variant, candidates));
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
