// SPDX-License-Identifier: Apache-2.0
#include "score/rank.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "stats.h"

namespace kjudge {
namespace {

bool is_before(const Entry& a, const Entry& b) {
  if (a.score.speedup != b.score.speedup) return a.score.speedup > b.score.speedup;
  // Numbers, the shorter the smaller: who came first is before a copy.
  const auto order = [](const Entry& entry) {
    return std::tuple(entry.submission.size(), std::string_view(entry.submission));
  };
  return order(a) < order(b);
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
// part, over the same shapes; none, 0, for who could not be replayed.
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
    if (other == play_off.others.end()) return std::nullopt;
    const Score& score = other->score;
    if (score.counts && !score.ranked) return std::nullopt;
    scores.push_back(score.ranked ? score : Score{});
  }
  return scores;
}

// Sorted by speedup, equal ones by submission, so that the order is the same everywhere. The best
// entry opens tie group 1. Each next entry joins the open group while its interval overlaps that of
// the group's best entry, touching included; the first that does not opens the next group and is
// its best. So a group is what its best entry cannot be told apart from, and never grows into a
// chain whose ends do not overlap. An entry that would overlap but stands below one that does not
// is in the later group: groups follow the order.
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

// The candidates [begin, end) of a submission, of which `last` is the last that is valid.
struct Judged {
  std::size_t begin = 0, end = 0, last = 0;
};

// Those that have a valid one.
std::vector<Judged> judged_submissions(const std::vector<Candidate>& candidates) {
  std::vector<Judged> found;
  for (std::size_t i = 0; i < candidates.size();) {
    Judged one{i, i, candidates.size()};
    for (; i < candidates.size() && candidates[i].submission == candidates[one.begin].submission;
         ++i) {
      if (!candidates[i].invalid) one.last = i;
    }
    one.end = i;
    if (one.last < candidates.size()) found.push_back(one);
  }
  return found;
}

// Of two that began in the same second one is the newer, for everybody the same.
auto begun(const Candidate& candidate) { return std::tie(candidate.started, candidate.id); }

bool is_better(const Candidate& a, const Candidate& b) {
  return a.speedup != b.speedup ? a.speedup > b.speedup : a.submission < b.submission;
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
  std::vector<Judged> submissions = judged_submissions(candidates);
  const auto content = [&](const Judged& one) {
    const Candidate& its = candidates[one.last];
    return std::tie(its.run, its.sha256, its.dtype, its.shape);
  };
  // Copies of a run stand together then, ascending.
  std::stable_sort(submissions.begin(), submissions.end(),
                   [&](const Judged& a, const Judged& b) { return content(a) < content(b); });
  std::vector<Chosen> best;           // of each run
  std::set<std::string_view> judged;  // ids of valid evaluations
  for (auto at = submissions.begin(); at != submissions.end();) {
    std::size_t newest = at->last;
    judged.clear();
    for (const auto first = at; at != submissions.end() && content(*at) == content(*first); ++at) {
      if (begun(candidates[at->last]) > begun(candidates[newest])) newest = at->last;
      for (std::size_t i = at->begin; i < at->end; ++i) {
        if (candidates[i].ranked && !candidates[i].invalid) judged.insert(candidates[i].id);
      }
    }
    if (!candidates[newest].ranked) continue;
    const Chosen chosen{newest, static_cast<int>(judged.size())};
    if (best.empty() || candidates[best.back().candidate].run != candidates[newest].run) {
      best.push_back(chosen);
    } else if (is_better(candidates[newest], candidates[best.back().candidate])) {
      best.back() = chosen;
    }
  }
  return best;
}

std::optional<bool> target_met(std::optional<double> target_ns, const Score& score) {
  if (!target_ns || score.shapes.empty()) return std::nullopt;
  std::vector<double> times;
  for (const ShapeScore& shape : score.shapes) times.push_back(shape.submission_ns);
  return geometric_mean(times) <= *target_ns;
}

std::optional<double> behind(const Score& before, const Score& score) {
  if (before.speedup < score.speedup) return std::nullopt;
  return before.speedup / score.speedup - 1;
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
