// SPDX-License-Identifier: Apache-2.0
#include "judge/backlog.h"

#include <algorithm>
#include <ctime>
#include <deque>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "error.h"

namespace kjudge {
namespace {

// 0 for what is no time: that waits longest.
double seconds_from_utc(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return 0;
  return static_cast<double>(::timegm(&parts));
}

// The last evaluation on these terms, and the last of them that answers others; null: none.
struct OnTerms {
  const ScoredEvaluation* last = nullptr;
  const ScoredEvaluation* answer = nullptr;
};
OnTerms evaluations_on(const ScoredSubmission& submission, const Terms& terms,
                       const std::set<std::string_view>& invalid) {
  OnTerms found;
  for (const ScoredEvaluation& one : submission.evaluations) {
    const Terms& its = *one.terms;
    if (its.challenge != terms.challenge ||
        (terms.challenge_version != 0 && its.challenge_version != terms.challenge_version)) {
      continue;
    }
    if (!terms.challenge_sha256.empty() && its.challenge_sha256 != terms.challenge_sha256) {
      throw Error(Fault::usage,
                  cat("challenge ", terms.challenge, " was changed since submission ",
                      submission.number, " was judged, and its version is still ",
                      terms.challenge_version, "; raise the version, and all are judged again"));
    }
    if (terms.arch.empty() || (its.arch == terms.arch && its.device_kind == terms.device_kind &&
                               its.method == terms.method)) {
      found.last = &one;
      if (one.verdict != Verdict::judge_error && !invalid.contains(one.id)) found.answer = &one;
    }
  }
  return found;
}

// Then what was not to be kept is gone, and cannot be judged again.
bool has_verdict(const ScoredSubmission& submission) {
  return std::any_of(
      submission.evaluations.begin(), submission.evaluations.end(),
      [](const ScoredEvaluation& one) { return one.verdict != Verdict::judge_error; });
}

bool is_for(const VariantRequest& wanted, const Terms& terms, const std::vector<Shape>& shapes) {
  if (!terms.arch.empty() && !names_device(wanted.gpu, terms.arch, terms.device_kind)) return false;
  return shapes.empty() || wanted.all_shapes() ||
         std::any_of(shapes.begin(), shapes.end(),
                     [&](const Shape& shape) { return shape.timed && wanted.takes(shape); });
}

// Who takes turns: whose token it was, else the run. A person's runs are one.
using Holder = std::pair<bool, std::string_view>;
Holder holder_of(const SubmissionIdentity& identity) {
  const bool known = !identity.owner.empty();
  return {known, known ? identity.owner : identity.run};
}

// Whether a clock that was ahead, and is right by now, said so. Its holder would wait until then.
bool is_to_come(double seconds) {
  constexpr double kClocksDiffer = 3600;
  return seconds > static_cast<double>(std::time(nullptr)) + kClocksDiffer;
}

// A holder's first by when it came to wait; a turn will have passed then, so its second comes after
// the first of all others, and so on.
void order(std::vector<Waiting>& waiting, const std::map<Holder, double>& turns) {
  struct Placed {
    Waiting waiting;
    double received = 0, since = 0;
    int round = 0;
  };
  std::vector<Placed> placed;
  placed.reserve(waiting.size());
  for (const Waiting& one : waiting) {
    placed.push_back({one, seconds_from_utc(one.submission->identity.received)});
  }
  // Numbers are given in order.
  for (std::size_t i = placed.size(); i-- > 1;) {
    if (is_to_come(placed[i - 1].received)) placed[i - 1].received = placed[i].received;
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.received < b.received; });
  std::map<Holder, const Placed*> before;
  for (Placed& one : placed) {
    const Holder holder = holder_of(one.waiting.submission->identity);
    const Placed*& last = before[holder];
    one.since = last == nullptr ? std::max(one.received, turns.at(holder)) : last->since;
    one.round = last == nullptr ? 0 : last->round + 1;
    last = &one;
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.round, a.since) < std::tie(b.round, b.since);
  });
  std::transform(placed.begin(), placed.end(), waiting.begin(),
                 [](const Placed& one) { return one.waiting; });
}

// The newest is the one that began last; of several in one second one is, for everybody the same.
auto begun(const ScoredEvaluation& evaluation) {
  return std::tie(evaluation.started, evaluation.id);
}

// Of the submissions with the same content the one that the others wait for, or that answers them.
class Firsts {
 public:
  // Of several that are judged the newest.
  void judged(std::string_view content, const Waiting& one) {
    ByContent& like = one.submission->identity.keep ? kept_ : not_kept_;
    const auto [at, is_first] = like.try_emplace(content, one);
    if (!is_first && begun(*at->second.answer) < begun(*one.answer)) at->second = one;
  }
  // Null: none before it.
  const Waiting* before(std::string_view content, const Waiting& waiting) {
    const bool keep = waiting.submission->identity.keep;
    ByContent& like = keep || kept_.contains(content) ? kept_ : not_kept_;
    const auto [at, alone] = like.try_emplace(content, waiting);
    return alone ? nullptr : &at->second;
  }

 private:
  using ByContent = std::unordered_map<std::string_view, Waiting>;

  // Of those whose files and recording go after the verdict: it is enough for their like.
  ByContent not_kept_;
  ByContent kept_;
};

// Files, with what is asked for of the challenge where that is not all of it.
class Contents {
 public:
  explicit Contents(const std::vector<Shape>& shapes) : shapes_(shapes) {}

  std::string_view of(const SubmissionIdentity& identity) {
    if (identity.variant.all_shapes()) return identity.sha256;
    const VariantRequest wanted =
        shapes_.empty() ? identity.variant : as_judged(identity.variant, shapes_);
    if (wanted.all_shapes()) return identity.sha256;
    return made_.emplace_back(cat(identity.sha256, "\n", wanted.dtype, "\n", wanted.shape));
  }

 private:
  const std::vector<Shape>& shapes_;
  std::deque<std::string> made_;
};

}  // namespace

Backlog backlog(const std::vector<ScoredSubmission>& submissions, const Terms& terms,
                const BacklogOptions& options) {
  std::map<Holder, double> turns;
  std::vector<Waiting> judged;
  Backlog found;
  for (const ScoredSubmission& submission : submissions) {
    const SubmissionIdentity& identity = submission.identity;
    if (!submission.challenge.empty() && submission.challenge != terms.challenge &&
        submission.challenge != kAllChallenges) {
      continue;
    }
    double& turn = turns[holder_of(identity)];
    if (!is_to_come(submission.claimed())) turn = std::max(turn, submission.claimed());
    const auto [evaluation, answer] = evaluations_on(submission, terms, options.invalid);
    if (!submission.unreadable.empty()) continue;
    if (evaluation == nullptr && !identity.keep && has_verdict(submission)) continue;
    if (evaluation != nullptr && evaluation->verdict != Verdict::judge_error) {
      if (answer != nullptr) judged.push_back({&submission, &submission, answer});
    } else if (!is_for(identity.variant, terms, options.shapes)) {
      if (!has_verdict(submission)) found.for_others.push_back(&submission);
    } else if (evaluation != nullptr && !(options.again && options.again(submission.number))) {
      found.judge_errors.push_back({&submission, evaluation});
    } else {
      found.waiting.push_back({&submission});
    }
  }
  Contents contents(options.shapes);
  Firsts firsts;
  std::unordered_set<std::string_view> wanted;  // mostly few
  for (const Waiting& one : found.waiting) wanted.insert(contents.of(one.submission->identity));
  if (wanted.empty()) judged.clear();
  for (const Waiting& one : judged) {
    const std::string_view content = contents.of(one.submission->identity);
    if (wanted.contains(content)) firsts.judged(content, one);
  }
  // Those that are judged are all known before any that waits.
  std::erase_if(found.waiting, [&](Waiting& waiting) {
    if (options.left_out.contains(waiting.submission->number)) return false;
    const Waiting* before = firsts.before(contents.of(waiting.submission->identity), waiting);
    if (before == nullptr) return false;
    waiting.answered_by = before->answered_by;
    waiting.answer = before->answer;
    if (waiting.answer != nullptr) return false;
    found.same_as_waiting.emplace_back(waiting.submission, before->submission);
    return true;
  });
  order(found.waiting, turns);
  return found;
}

std::map<int, int> places_in_queue(const std::vector<ScoredSubmission>& submissions,
                                   std::set<std::string> challenges,
                                   const std::function<bool(int)>& is_judged) {
  for (const ScoredSubmission& one : submissions) {
    if (one.challenge != kAllChallenges) challenges.insert(one.challenge);
  }
  std::map<int, int> places;
  for (const std::string& challenge : challenges) {
    const Terms any = {challenge, 0, "", "", "", 0};
    int ahead = 0;
    const Backlog all = backlog(submissions, any);
    std::map<int, int> here;
    for (const Waiting& one : all.waiting) {
      if (!is_judged(one.submission->number)) here.try_emplace(one.submission->number, ahead++);
    }
    for (const auto& [one, first] : all.same_as_waiting) {
      const auto at = here.find(first->number);
      places.try_emplace(one->number, at == here.end() ? 0 : at->second + 1);
    }
    places.merge(here);
  }
  return places;
}

}  // namespace kjudge
