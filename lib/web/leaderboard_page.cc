// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <ctime>

#include "error.h"
#include "judge/report.h"
#include "web/chart.h"
#include "web/fragments.h"
#include "web/pages.h"

namespace kjudge {
namespace {

Html key_link(const std::string& from, const EvaluationKey& key) {
  return link(from, evaluation_address(key.submission, key.evaluation),
              evaluation_name(key.submission, key.evaluation));
}

Html badge(const char* mood, const std::string& text) {
  return element("span", {{"class", cat("badge ", mood)}}, text);
}

// A run with what it says of itself.
Html run_cell(const Leaderboard& board, const LeaderboardRow& row) {
  const std::string& run = row.ranked.entry.run;
  Html cell("span", {});
  cell.add(link(board.address, run_address(run), person(run)));
  if (!row.submission->notes.label.empty()) {
    cell.add(" ");
    cell.add(badge("odd", row.submission->notes.label));
  }
  return cell;
}

Html speedup_cell(const Leaderboard& board, const Score& score) {
  Html speedup("span", {});
  speedup.add(element("strong", {}, times_text(score.speedup)));
  const auto add_badge = [&](const char* mood, const std::string& text) {
    speedup.add(" ");
    speedup.add(badge(mood, text));
  };
  if (std::any_of(score.shapes.begin(), score.shapes.end(),
                  [](const ShapeScore& shape) { return shape.below_floor; })) {
    add_badge("odd", "below the floor");
  }
  if (target_met(board.target_ns, score).value_or(false)) add_badge("good", "target met");
  return speedup;
}

Html submission_cell(const Leaderboard& board, const LeaderboardRow& row) {
  Html cell("span", {});
  cell.add(key_link(board.address, row.key));
  if (row.submission->published) {
    cell.add(" ");
    cell.add(link(board.address, code_address(row.key.submission), "code"));
  }
  return cell;
}

Html ranking_table(const Leaderboard& board) {
  Table table;
  table.caption = "Ranking";
  table.columns = {"Rank",       "Run",   "Speedup", "Interval", "Behind the one before",
                   "Submission", "Judged"};
  table.numeric = {true, false, true, true, true, true, false};
  table.sortable = true;
  for (std::size_t i = 0; i < board.rows.size(); ++i) {
    const LeaderboardRow& row = board.rows[i];
    const auto& [entry, rank, group, played_off] = row.ranked;
    const bool tied = (i > 0 && board.rows[i - 1].ranked.tie_group == group) ||
                      (i + 1 < board.rows.size() && board.rows[i + 1].ranked.tie_group == group);
    const auto share =
        i == 0 ? std::nullopt : behind(board.rows[i - 1].ranked.entry.score, entry.score);
    const double percent = 100 * share.value_or(0);
    std::string place = std::to_string(rank);
    if (tied) place += ", tied";
    if (played_off) place += ", played off";
    table.rows.push_back(
        {number_cell(place, static_cast<double>(i)),
         {run_cell(board, row), Cell::Kind::heading},
         number_cell(speedup_cell(board, entry.score), entry.score.speedup),
         number_cell(interval_text_of(entry.score.interval), entry.score.interval.low),
         number_cell(share ? cat(fixed_text(percent, 1), " %") : "–", percent),
         number_cell(submission_cell(board, row), row.key.submission),
         text_cell(time_element(row.evaluation->started))});
  }
  return table_element(table);
}

Html pending_table(const Leaderboard& board) {
  Table table;
  table.caption = "Faster than the first, and judged only once";
  table.columns = {"Run", "Speedup", "Interval", "Submission"};
  table.numeric = {false, true, true, true};
  for (const LeaderboardRow& row : board.pending) {
    const Score& score = row.ranked.entry.score;
    table.rows.push_back(
        {heading_cell(run_cell(board, row)), number_cell(speedup_cell(board, score)),
         number_cell(interval_text_of(score.interval)), number_cell(submission_cell(board, row))});
  }
  return table_element(table);
}

Html bars_table(const Leaderboard& board) {
  static const Score kNobody;
  const Score& first = board.rows.empty() ? kNobody : board.rows.front().ranked.entry.score;
  Table table;
  table.caption = "Bars: what runs are compared with; never ranked";
  table.columns = {"Name", "Speedup", "Basis", "Source"};
  table.numeric = {false, true, false, false};
  for (const auto& [number, bar] : board.bars) {
    const auto speedup = bar_speedup(bar, first);
    const bool claimed = bar.basis == Bar::Basis::claimed;
    table.rows.push_back(
        {heading_cell(person(bar.name)), number_cell(speedup ? times_text(*speedup) : "–"),
         text_cell(badge("odd", claimed ? "claimed, not verified" : "measured by the organizer")),
         text_cell(bar.date.empty() ? bar.source : cat(bar.source, ", ", bar.date))});
  }
  return table_element(table);
}

Html shapes_of_best(const Leaderboard& board) {
  Table table;
  table.caption = "Speedups by shape";
  table.columns = {"Run"};
  table.numeric = {false};
  table.sortable = true;
  for (const ShapeScore& shape : board.rows.front().ranked.entry.score.shapes) {
    table.columns.push_back(shape.name);
    table.numeric.push_back(true);
  }
  for (const LeaderboardRow& row : board.rows) {
    const Entry& entry = row.ranked.entry;
    std::vector<Cell> cells = {
        heading_cell(link(board.address, run_address(entry.run), person(entry.run)))};
    for (std::size_t i = 1; i < table.columns.size(); ++i) {
      const auto at =
          std::find_if(entry.score.shapes.begin(), entry.score.shapes.end(),
                       [&](const ShapeScore& shape) { return shape.name == table.columns[i]; });
      cells.push_back(at == entry.score.shapes.end()
                          ? number_cell("–")
                          : number_cell(times_text(at->speedup), at->speedup));
    }
    table.rows.push_back(std::move(cells));
  }
  return table_element(table);
}

// Each time the best became better, newest first.
Html records_table(const Leaderboard& board) {
  Table table;
  table.caption = "Records, newest first";
  table.columns = {"Judged", "Run", "Speedup", "Submission"};
  table.numeric = {false, false, true, true};
  double best = 0;
  for (const HistoryPoint& point : board.history) {
    if (point.speedup <= best) continue;
    best = point.speedup;
    const std::time_t seconds = static_cast<std::time_t>(point.time_s);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> time{};
    std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    table.rows.push_back({text_cell(time_element(time.data())),
                          text_cell(link(board.address, run_address(point.run), person(point.run))),
                          number_cell(times_text(point.speedup)),
                          number_cell(key_link(board.address, point.key))});
  }
  std::reverse(table.rows.begin(), table.rows.end());
  return table_element(table);
}

Html without_score(const Leaderboard& board) {
  Table table;
  table.caption = "Runs without a score";
  table.columns = {"Run", "Newest submission", "Verdict"};
  table.numeric = {false, true, false};
  for (const LeaderboardRow& row : board.others) {
    const std::string& run = row.submission->stored.identity.run;
    Html verdict("span", {});
    verdict.add(verdict_badge(row.evaluation->verdict));
    for (const std::string& reason : row.evaluation->invalid)
      verdict.add(cat(" does not count: ", reason));
    if (!row.evaluation->variant.all_shapes()) {
      verdict.add(" ");
      verdict.add(partial_badge(row.evaluation->variant));
    } else if (row.evaluation->verdict == Verdict::accepted) {
      verdict.add(cat(" ", row.evaluation->score.why_not));
    }
    table.rows.push_back({heading_cell(link(board.address, run_address(run), person(run))),
                          number_cell(key_link(board.address, row.key)),
                          text_cell(std::move(verdict))});
  }
  return table_element(table);
}

}  // namespace

std::string leaderboard_page(const Leaderboard& board, const std::vector<Leaderboard>& boards) {
  const Variant& variant = board.variant;
  PageFrame frame;
  frame.title = cat("Leaderboard: ", variant_name(variant));
  frame.address = board.address;
  frame.above = {{cat(variant.challenge, " version ", variant.version),
                  challenge_address(variant.challenge, variant.version)}};
  std::vector<Html> contents;
  Html others("ul", {{"class", "variants"}});
  int count = 0;
  for (const Leaderboard& other : boards) {
    if (other.variant.challenge != variant.challenge || other.variant.version != variant.version)
      continue;
    ++count;
    if (other.address == board.address) {
      others.add(element("li", {{"aria-current", "true"}}, variant_name(other.variant)));
    } else {
      others.add(
          element("li", {}, link(board.address, other.address, variant_name(other.variant))));
    }
  }
  if (count > 1) contents.push_back(std::move(others));
  if (board.rows.empty()) {
    contents.push_back(element("p", {}, "Nobody has a score here yet."));
  } else {
    contents.push_back(ranking_table(board));
    contents.push_back(
        element("p", {{"class", "note"}},
                "Speedup: geometric mean over the shapes of the median of their paired ratios, "
                "baseline time / submission time. Interval: smallest to largest of the rounds. "
                "Runs whose intervals overlap that of the best of their group are tied. Method ",
                std::to_string(variant.method), "."));
    contents.push_back(
        section("History of the best",
                {history_chart(board.history,
                               cat("Best speedup over time: now ",
                                   times_text(board.rows.front().ranked.entry.score.speedup))),
                 records_table(board)}));
    if (board.rows.front().ranked.entry.score.shapes.size() > 1)
      contents.push_back(section("Shapes", {shapes_of_best(board)}));
  }
  if (!board.pending.empty()) {
    contents.push_back(section("Pending", {element("p", {{"class", "note"}},
                                                   "A lucky time may have put them there, so they "
                                                   "are judged again before they have a rank."),
                                           pending_table(board)}));
  }
  if (!board.bars.empty()) contents.push_back(section("Bars", {bars_table(board)}));
  if (!board.others.empty()) contents.push_back(section("Not ranked", {without_score(board)}));
  return framed(frame, std::move(contents));
}

}  // namespace kjudge
