// SPDX-License-Identifier: Apache-2.0
#include "score/rank.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "stats.h"

namespace kjudge {
namespace {

bool is_before(const Entry& a, const Entry& b) {
  if (a.score.speedup != b.score.speedup) return a.score.speedup > b.score.speedup;
  return std::tie(a.run, a.submission) < std::tie(b.run, b.submission);
}

bool overlap(const Interval& a, const Interval& b) { return a.high >= b.low && a.low <= b.high; }

// Those above the first that was judged twice; with none such, nobody's first place is in doubt
// more than another's.
std::vector<Entry> take_pending(std::vector<Entry>& entries) {
  const auto confirmed = std::find_if(entries.begin(), entries.end(),
                                      [](const Entry& entry) { return entry.judged > 1; });
  if (confirmed == entries.end()) return {};
  std::vector<Entry> pending(std::make_move_iterator(entries.begin()),
                             std::make_move_iterator(confirmed));
  entries.erase(entries.begin(), confirmed);
  return pending;
}

// Scores of a group against one of its members, in the group's order; nullopt unless all of it took
// part and has one.
std::optional<std::vector<Score>> scores_in(const PlayedOff& play_off,
                                            const std::vector<Entry>& group) {
  std::vector<Score> scores;
  for (const Entry& entry : group) {
    if (entry.id == play_off.best) {
      Score& own = scores.emplace_back();
      own.ranked = true;
      own.speedup = 1;
      own.interval = {1, 1};
      continue;
    }
    const auto other =
        std::find_if(play_off.others.begin(), play_off.others.end(),
                     [&](const PlayedOff::Other& candidate) { return candidate.id == entry.id; });
    if (other == play_off.others.end() || !other->score.ranked) return std::nullopt;
    scores.push_back(other->score);
  }
  return scores;
}

// Sorted by speedup, equal ones by name, so that the order is the same everywhere. The best entry
// opens tie group 1. Each next entry joins the open group while its interval overlaps that of the
// group's best entry, touching included; the first that does not opens the next group and is its
// best. So a group is what its best entry cannot be told apart from, and never grows into a chain
// whose ends do not overlap. An entry that would overlap but stands below one that does not is in
// the later group: groups follow the order.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<const Score*>& scores) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (groups.empty() || !overlap(scores[groups.back().front()]->interval, scores[i]->interval)) {
      groups.emplace_back();
    }
    groups.back().push_back(i);
  }
  return groups;
}

class Ranking {
 public:
  void add(std::vector<Entry> group, bool played_off) {
    const int rank = static_cast<int>(ranked_.size()) + 1;
    ++groups_;
    for (Entry& entry : group) ranked_.push_back({std::move(entry), rank, groups_, played_off});
  }

  // A group in the order of its play-off, which may leave smaller groups of it.
  void add(std::vector<Entry> group, const std::vector<Score>& scores) {
    std::vector<std::size_t> order(group.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return scores[a].speedup > scores[b].speedup;
    });
    std::vector<const Score*> sorted;
    for (const std::size_t at : order) sorted.push_back(&scores[at]);
    for (const auto& smaller : groups_of(sorted)) {
      std::vector<Entry> entries;
      for (const std::size_t at : smaller) entries.push_back(std::move(group[order[at]]));
      add(std::move(entries), true);
    }
  }

  std::vector<RankedEntry> take() { return std::move(ranked_); }

 private:
  std::vector<RankedEntry> ranked_;
  int groups_ = 0;
};

}  // namespace

std::vector<Chosen> choose_best(const std::vector<Candidate>& candidates) {
  std::map<std::string_view, Chosen> best;
  std::set<std::string_view> judged;  // ids of the submission's valid evaluations
  for (std::size_t i = 0; i < candidates.size();) {
    const int submission = candidates[i].submission;
    std::optional<std::size_t> last;
    judged.clear();
    for (; i < candidates.size() && candidates[i].submission == submission; ++i) {
      if (candidates[i].invalid) continue;
      last = i;
      if (candidates[i].ranked) judged.insert(candidates[i].id);
    }
    if (!last || !candidates[*last].ranked) continue;
    const Chosen chosen{*last, static_cast<int>(judged.size())};
    const auto [at, first] = best.try_emplace(candidates[*last].run, chosen);
    if (!first && candidates[*last].speedup > candidates[at->second.candidate].speedup) {
      at->second = chosen;
    }
  }
  std::vector<Chosen> all;
  for (const auto& [run, chosen] : best) all.push_back(chosen);
  return all;
}

std::optional<bool> target_met(std::optional<double> target_ns, const Score& score) {
  if (!target_ns || score.shapes.empty()) return std::nullopt;
  std::vector<double> times;
  for (const ShapeScore& shape : score.shapes) times.push_back(shape.submission_ns);
  return geometric_mean(times) <= *target_ns;
}

Standings rank(std::vector<Entry> entries, const std::vector<PlayedOff>& play_offs) {
  std::erase_if(entries, [](const Entry& entry) { return !entry.score.ranked; });
  std::sort(entries.begin(), entries.end(), is_before);
  Standings standings;
  standings.pending = take_pending(entries);
  std::vector<const Score*> scores;
  for (const Entry& entry : entries) scores.push_back(&entry.score);
  Ranking ranking;
  for (const auto& members : groups_of(scores)) {
    std::vector<Entry> group;
    for (const std::size_t at : members) group.push_back(entries[at]);
    std::optional<std::vector<Score>> decided;
    for (auto at = play_offs.rbegin(); at != play_offs.rend() && group.size() > 1; ++at) {
      if ((decided = scores_in(*at, group))) break;
    }
    if (decided) {
      ranking.add(std::move(group), *decided);
    } else {
      ranking.add(std::move(group), false);
    }
  }
  standings.ranked = ranking.take();
  return standings;
}

}  // namespace kjudge
