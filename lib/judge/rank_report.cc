// SPDX-License-Identifier: Apache-2.0
#include "judge/rank_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>

#include "error.h"
#include "judge/report.h"

namespace kjudge {
namespace {

std::string bar_text(const Bar& bar) {
  return bar.basis == Bar::Basis::claimed ? "bar, claimed" : "bar";
}

bool is_known_whole(const VariantStandings& standings) {
  return standings.challenge &&
         is_whole(*standings.challenge, standings.terms.arch, standings.shapes);
}

std::string list_of(const std::vector<int>& submissions) {
  constexpr std::size_t kNamed = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(submissions.size(), kNamed); ++i)
    list += cat(i == 0 ? "" : ", ", submissions[i]);
  return list + (submissions.size() > kNamed ? ", ..." : "");
}

class StandingsTable {
 public:
  StandingsTable(const VariantStandings& standings, const ScoreIndex& index)
      : standings_(standings), index_(index) {
    for (const auto& [number, bar] : standings.bars) {
      bars_.emplace_back(speedup_of(bar, standings), &bar);
    }
    // The fastest first; those without a speedup last.
    std::stable_sort(bars_.begin(), bars_.end(), [](const auto& a, const auto& b) {
      return a.first.value_or(0) > b.first.value_or(0);
    });
  }

  std::string text() {
    const auto& [ranked, pending] = standings_.standings;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      bars_above(ranked[i].entry.score.speedup);
      const auto share =
          i == 0 ? std::nullopt : behind(ranked[i - 1].entry.score, ranked[i].entry.score);
      std::string tie = cat("group ", ranked[i].tie_group);
      if (ranked[i].played_off) tie += ", played off";
      entry(std::to_string(ranked[i].rank), ranked[i].entry, share ? percent(*share) : "-", tie);
    }
    bars_above(-1);
    for (const Entry& one : pending) entry("pending", one, "-", "-");
    drop_empty_columns();
    return aligned(rows_);
  }

 private:
  static std::string percent(double share) { return cat(decimals(100 * share, 1), " %"); }
  static std::string decimals(double value, int places) {
    std::string text(64, '\0');
    text.resize(
        static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.*f", places, value)));
    return text;
  }

  void entry(const std::string& rank, const Entry& entry, const std::string& behind_text,
             const std::string& tie) {
    const Score& score = entry.score;
    const AboutEntry known = about_entry(entry, standings_, index_);
    rows_.push_back(
        {rank, printable(entry.run), entry.submission, decimals(score.speedup, 3) + "x",
         cat("[", decimals(score.interval.low, 3), ", ", decimals(score.interval.high, 3), "]"),
         behind_text, tie, std::to_string(entry.judged), known.label,
         known.target_met ? *known.target_met ? "met" : "missed" : "", known.code});
  }

  void bars_above(double speedup) {
    for (; next_bar_ < bars_.size(); ++next_bar_) {
      const auto& [of_bar, bar] = bars_[next_bar_];
      if (speedup >= 0 && of_bar.value_or(0) <= speedup) return;
      rows_.push_back({bar_text(*bar), printable(bar->name), "-",
                       of_bar ? decimals(*of_bar, 3) + "x" : "-", "-", "-", "-", "-",
                       printable(cat(bar->source, bar->date.empty() ? "" : ", ", bar->date)), "",
                       ""});
    }
  }

  // A column that nobody has anything in.
  void drop_empty_columns() {
    constexpr std::size_t kFirst = 7;
    for (std::size_t column = rows_.front().size(); column-- > kFirst;) {
      const bool empty = std::all_of(rows_.begin() + 1, rows_.end(), [&](const auto& row) {
        return row[column].empty() ||
               (column == kFirst && (row[column] == "1" || row[column] == "-"));
      });
      for (auto& row : rows_) {
        if (empty) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
      }
    }
  }

  const VariantStandings& standings_;
  const ScoreIndex& index_;
  std::vector<std::pair<std::optional<double>, const Bar*>> bars_;
  std::size_t next_bar_ = 0;
  std::vector<std::vector<std::string>> rows_ = {{"rank", "run", "submission", "speedup",
                                                  "interval", "behind", "tie", "judged", "label",
                                                  "target", "code"}};
};

}  // namespace

AboutEntry about_entry(const Entry& entry, const VariantStandings& standings,
                       const ScoreIndex& index) {
  AboutEntry about;
  about.target_met = target_met(target_of(standings), entry.score);
  const ScoredSubmission* submission = index.find(std::stoi(entry.submission));
  if (submission == nullptr) return about;
  about.label = submission->notes.label;
  if (standings.open.contains(submission->number)) {
    about.license = submission->notes.license;
    about.code = cat("submissions/", entry.submission, "/files");
  }
  return about;
}

std::optional<double> target_of(const VariantStandings& standings) {
  return is_known_whole(standings) ? standings.challenge->target_ns : std::nullopt;
}

std::string bounty_of(const VariantStandings& standings) {
  return is_known_whole(standings) ? standings.challenge->bounty : "";
}

std::optional<double> speedup_of(const Bar& bar, const VariantStandings& standings) {
  static const Score kNobody;
  const auto& ranked = standings.standings.ranked;
  return bar_speedup(bar, ranked.empty() ? kNobody : ranked.front().entry.score);
}

std::string standings_title(const VariantStandings& standings) {
  const Terms& terms = standings.terms;
  std::string title =
      cat(terms.challenge, " version ", terms.challenge_version, ", ", terms.device_kind);
  for (const std::string* part : {&standings.variant.dtype, &standings.variant.shape}) {
    if (!part->empty()) title += cat(", ", *part);
  }
  title += cat(", method ", terms.method);
  if (const auto target = target_of(standings)) title += cat(", target ", duration_text(*target));
  if (const std::string& bounty = bounty_of(standings); !bounty.empty()) {
    title += cat(", bounty: ", bounty);
  }
  return title;
}

std::string standings_table(const VariantStandings& standings, const ScoreIndex& index) {
  return StandingsTable(standings, index).text();
}

std::vector<std::string> standings_remarks(const VariantStandings& standings) {
  std::vector<std::string> lines;
  if (const std::size_t count = standings.standings.pending.size(); count > 0) {
    lines.push_back(cat(count, count == 1 ? " run is" : " runs are",
                        " pending: faster than the first, and judged only once; kjudge playoff "
                        "judges again before they are ranked"));
  }
  struct Evaluations {
    std::size_t count = 0;
    std::vector<int> submissions;  // each once
  };
  std::map<std::string, Evaluations> invalid;  // by reason
  for (const auto& one : standings.invalid) {
    auto& [count, submissions] = invalid[one.reason];
    ++count;
    if (submissions.empty() || submissions.back() != one.submission) {
      submissions.push_back(one.submission);
    }
  }
  for (const auto& [reason, of] : invalid) {
    lines.push_back(cat(of.count, of.count == 1 ? " evaluation does" : " evaluations do",
                        " not count: ", reason, " (submission ", list_of(of.submissions), ")"));
  }
  std::map<std::string, std::vector<int>> partial;  // submissions by what was asked for
  for (const auto& one : standings.partial) {
    auto& submissions = partial[request_text(one.variant)];
    if (submissions.empty() || submissions.back() != one.submission) {
      submissions.push_back(one.submission);
    }
  }
  for (const auto& [variant, submissions] : partial) {
    lines.push_back(
        cat(submissions.size(), submissions.size() == 1 ? " submission was" : " submissions were",
            " judged only for ", variant, ", and ranked there: ", list_of(submissions)));
  }
  if (const std::size_t count = standings.unverified.size(); count > 0) {
    lines.push_back(cat(count, count == 1 ? " submission is" : " submissions are",
                        " unverified, and not ranked: the files were not to be kept: ",
                        list_of(standings.unverified)));
  }
  if (standings.left_out > 0) {
    std::string list;
    for (const std::string& other : standings.elsewhere)
      list += cat(list.empty() ? "" : ", ", other);
    const bool one = standings.left_out == 1;
    lines.push_back(cat(
        standings.left_out, one ? " submission" : " submissions",
        list.empty()
            ? cat(one ? " is" : " are", " left out: kjudge failed before it knew the device")
            : cat(one ? " was" : " were", " judged only on other terms, and left out: ", list)));
  }
  return lines;
}

std::string history_table(const std::vector<HistoryEntry>& history) {
  std::vector<std::vector<std::string>> rows = {
      {"judged", "submission", "evaluation", "verdict", "speedup", "interval", "best", "remark"}};
  double best = 0;
  for (const HistoryEntry& one : history) {
    const Score& score = one.score;
    std::array<char, 64> speedup{}, interval{};
    std::snprintf(speedup.data(), speedup.size(), "%.3fx", score.speedup);
    std::snprintf(interval.data(), interval.size(), "[%.3f, %.3f]", score.interval.low,
                  score.interval.high);
    std::string remark;
    for (const std::string& reason : one.invalid)
      remark += cat(remark.empty() ? "does not count: " : "; ", reason);
    if (!one.variant.all_shapes()) {
      remark += cat(remark.empty() ? "" : "; ", "partial: ", request_text(one.variant));
    }
    const bool counts = score.ranked && one.invalid.empty();
    const bool record = counts && score.speedup > best;
    if (record) best = score.speedup;
    rows.push_back({one.started, std::to_string(one.submission), std::to_string(one.evaluation),
                    std::string(name(one.verdict)), score.ranked ? speedup.data() : "-",
                    score.ranked ? interval.data() : "-", record ? "yes" : "-", printable(remark)});
  }
  return aligned(rows);
}

}  // namespace kjudge
