// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "challenge/variant_request.h"
#include "error.h"
#include "store/standings.h"
#include "store/terms.h"
#include "web/site.h"

namespace kjudge {
namespace {

// An evaluation that may be on a leaderboard.
struct Contender {
  const SubmissionSummary* submission = nullptr;
  const EvaluationSummary* evaluation = nullptr;
};

// The score over the shapes that `names` has, which is put into `part`; without names over all.
const Score& over(const std::vector<std::string>& names, const Score& score, Score& part) {
  if (names.empty()) return score;
  part = part_of(score, names);
  return part;
}

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
  if (!variant.shape.empty()) address += cat("-shape-", address_part(variant.shape));
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

// A ranked evaluation that counts for its submission, at the time it began.
void add_history(Leaderboard& board, const Contender& contender, double speedup) {
  const auto time = seconds_of(contender.evaluation->started);
  if (!time) return;
  const SubmissionIdentity& identity = contender.submission->stored.identity;
  board.history.push_back(
      {*time, speedup, {identity.number, contender.evaluation->number}, identity.run});
}

// What contends for a leaderboard, ascending, and over which shapes.
struct Contest {
  Variant variant;
  std::vector<std::string> shapes;  // empty: all
  const std::vector<Contender>& contenders;
};

// Whether what was asked for has to do with it, also where nothing came of it.
bool concerns(const EvaluationSummary& evaluation, const Contest& contest) {
  const VariantRequest& asked = evaluation.variant;
  if (contest.shapes.empty() || asked.all_shapes()) return true;
  if (!asked.dtype.empty() && asked.dtype == contest.variant.dtype) return true;
  return std::any_of(contest.shapes.begin(), contest.shapes.end(), [&](const std::string& shape) {
    return shape == asked.shape ||
           std::any_of(evaluation.score.shapes.begin(), evaluation.score.shapes.end(),
                       [&](const ShapeScore& scored) { return scored.name == shape; });
  });
}

Leaderboard make_leaderboard(const Site& site, const Terms& terms, const Contest& contest) {
  const auto& [variant, shapes, contenders] = contest;
  Leaderboard board;
  board.variant = variant;
  board.address = address_of(variant);
  for (const auto& [number, bar] : site.bars) {
    if (is_of(bar, terms, variant.dtype, variant.shape)) board.bars.emplace_back(number, bar);
  }
  if (const Challenge* challenge = site.challenge_of(terms)) {
    if (is_whole(*challenge, variant.arch, shapes)) board.target_ns = challenge->target_ns;
  }

  std::vector<Candidate> candidates;
  std::vector<const Contender*> contender_of;  // of each candidate
  candidates.reserve(contenders.size());
  contender_of.reserve(contenders.size());
  std::unordered_map<std::string_view, const Contender*> newest;  // by run
  for (std::size_t i = 0; i < contenders.size();) {
    const int submission = contenders[i].submission->stored.identity.number;
    std::optional<std::size_t> counts;  // its last valid candidate
    for (; i < contenders.size() && contenders[i].submission->stored.identity.number == submission;
         ++i) {
      const auto& [summary, evaluation] = contenders[i];
      if (!concerns(*evaluation, contest)) continue;
      Score part;
      const Score& score = over(shapes, evaluation->score, part);
      const SubmissionIdentity& identity = summary->stored.identity;
      const std::string& run = identity.run;
      newest[run] = &contenders[i];
      if (evaluation->invalid.empty()) counts = candidates.size();
      contender_of.push_back(&contenders[i]);
      candidates.push_back({submission, evaluation->number, run, evaluation->id, score.ranked,
                            !evaluation->invalid.empty(), score.speedup, evaluation->started,
                            identity.sha256, identity.variant.dtype, identity.variant.shape});
    }
    if (counts && candidates[*counts].ranked) {
      add_history(board, *contender_of[*counts], candidates[*counts].speedup);
    }
  }
  std::map<std::string_view, const Contender*> best;  // by run
  std::vector<Entry> entries;
  for (const Chosen& chosen : choose_best(candidates)) {
    const Contender& contender = *contender_of[chosen.candidate];
    const SubmissionIdentity& identity = contender.submission->stored.identity;
    best[identity.run] = &contender;
    Score part;
    entries.push_back({std::to_string(identity.number), identity.run,
                       over(shapes, contender.evaluation->score, part),
                       contender.evaluation->number, contender.evaluation->id, chosen.judged});
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
    if (!best.contains(run)) board.others.push_back(row_of(*contender));
  }
  std::sort(board.others.begin(), board.others.end(),
            [](const LeaderboardRow& a, const LeaderboardRow& b) {
              return a.submission->stored.identity.run < b.submission->stored.identity.run;
            });
  std::stable_sort(
      board.history.begin(), board.history.end(),
      [](const HistoryPoint& a, const HistoryPoint& b) { return a.time_s < b.time_s; });
  return board;
}

}  // namespace

Variant variant_of(const Terms& terms, std::string dtype, std::string shape) {
  return {terms.challenge,  terms.challenge_version, terms.challenge_sha256,
          terms.arch,       terms.device_kind,       terms.method,
          std::move(dtype), std::move(shape)};
}

Variant variant_of(const EvaluationSummary& evaluation) {
  const VariantRequest& asked = evaluation.variant;
  // A shape's name says its dtype.
  return variant_of(*evaluation.terms, asked.shape.empty() ? asked.dtype : "", asked.shape);
}

std::string variant_name(const Variant& variant) {
  std::string text = variant.device_kind;
  for (const std::string* part : {&variant.dtype, &variant.shape}) {
    if (!part->empty()) text += cat(", ", *part);
  }
  return text;
}

std::vector<Leaderboard> make_leaderboards(const Site& site) {
  std::map<Terms, std::vector<Contender>> found;
  for (const SubmissionSummary& submission : site.submissions) {
    for (const EvaluationSummary& evaluation : submission.evaluations) {
      // A judge error before there was a device has no arch.
      if (evaluation.terms->arch.empty()) continue;
      found[*evaluation.terms].push_back({&submission, &evaluation});
    }
  }
  // When an evaluation began, and its number, for several may in one second: as rank has it.
  using Begun = std::tuple<std::string_view, int, int>;
  struct Dated {
    Begun newest;
    Leaderboard board;
  };
  std::vector<Dated> dated;
  for (const auto& [terms, contenders] : found) {
    Begun newest;
    for (const auto& [submission, evaluation] : contenders) {
      newest = std::max(newest, Begun{evaluation->started, submission->stored.identity.number,
                                      evaluation->number});
    }
    const auto add = [&](Contest contest) {
      dated.push_back({newest, make_leaderboard(site, terms, contest)});
    };
    add({variant_of(terms), {}, contenders});
    std::set<std::string> asked;
    for (const Contender& one : contenders) {
      if (!one.evaluation->variant.shape.empty()) asked.insert(one.evaluation->variant.shape);
    }
    for (const auto& [dtype, shape, shapes] :
         ranked_parts(site.challenge_of(terms), terms.arch, asked)) {
      add({variant_of(terms, dtype, shape), shapes, contenders});
    }
  }
  std::stable_sort(dated.begin(), dated.end(),
                   [](const Dated& a, const Dated& b) { return a.newest > b.newest; });
  std::vector<Leaderboard> boards;
  for (Dated& one : dated) boards.push_back(std::move(one.board));
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
