// SPDX-License-Identifier: Apache-2.0
#include "web/server/api_json.h"

#include <algorithm>
#include <map>
#include <set>

#include "error.h"
#include "score/result_json.h"
#include "store/running.h"

namespace kjudge {
namespace {

Json text(const std::string& value) { return Json{value}; }
Json whole(std::int64_t value) { return Json{value}; }

std::string page_url(const std::string& url, const std::string& address) {
  return cat(url, "/", address);
}

// The run's place on the board of what was asked for.
void add_rank(Json::Object& answer, const ContestView& view, const EvaluationSummary& evaluation,
              const std::string& run) {
  const Variant asked = variant_of(evaluation);
  for (const Leaderboard& board : view.pages.boards()) {
    if (board.variant != asked) continue;
    for (const LeaderboardRow& row : board.rows) {
      if (row.ranked.entry.run != run) continue;
      answer.push_back({"rank", whole(row.ranked.rank)});
      answer.push_back({"of", whole(static_cast<std::int64_t>(board.rows.size()))});
    }
    for (const LeaderboardRow& row : board.pending) {
      if (row.ranked.entry.run == run) answer.push_back({"pending", Json{true}});
    }
  }
}

Json::List texts(const std::vector<std::string>& lines) {
  Json::List list;
  for (const std::string& line : lines) list.push_back(text(line));
  return list;
}

// What went wrong is told last.
std::string end_of(const std::string& log) {
  constexpr std::size_t kMostBytes = 1 << 16;
  if (log.size() <= kMostBytes) return log;
  std::size_t begin = log.size() - kMostBytes;
  while (begin < log.size() && (static_cast<unsigned char>(log[begin]) & 0xc0) == 0x80) ++begin;
  return log.substr(begin);
}

Json evaluation_answer(const ContestView& view, const SubmissionSummary& submission,
                       const EvaluationSummary& evaluation, const std::string& url) {
  const Terms& terms = *evaluation.terms;
  const int number = submission.stored.identity.number;
  const Evaluation facts = read_evaluation(view.site.folder_of(submission), evaluation.number);
  Score scored = score(facts);
  set_unverified(submission.stored.identity, scored);
  Json::Object answer = {
      {"number", whole(evaluation.number)},
      {"url", text(page_url(url, evaluation_address(number, evaluation.number)))},
      {"challenge", text(terms.challenge)},
      {"challenge_version", whole(terms.challenge_version)}};
  if (terms.arch.starts_with("sm_")) answer.push_back({"gpu", text(terms.device_kind)});
  if (const Challenge* challenge = view.site.challenge_of(terms)) {
    std::set<std::string> dtypes;
    for (const Shape& shape : challenge->shapes) {
      if (shape.timed) dtypes.insert(shape.dtype);
    }
    if (dtypes.size() == 1) answer.push_back({"dtype", text(*dtypes.begin())});
  }
  if (!facts.variant.all_shapes()) {
    answer.push_back({"variant", text(request_text(facts.variant))});
  }
  answer.push_back({"verdict", text(std::string(name(facts.verdict)))});
  answer.push_back({"message", text(facts.message)});
  Json::List shapes;
  for (const ShapeFacts& shape : facts.shapes) {
    shapes.push_back(Json{Json::Object{{"name", text(shape.name)},
                                       {"verdict", text(std::string(name(shape.verdict)))},
                                       {"message", text(shape.message)}}});
  }
  answer.push_back({"shapes", Json{std::move(shapes)}});
  if (!facts.log.empty()) answer.push_back({"log", text(end_of(facts.log))});
  answer.push_back({"score", score_to_json(scored)});
  if (!evaluation.invalid.empty()) {
    answer.push_back({"invalid", Json{texts(evaluation.invalid)}});
  }
  if (scored.counts) add_rank(answer, view, evaluation, submission.stored.identity.run);
  return Json{std::move(answer)};
}

// Of each challenge and kind of device the newest.
std::vector<const EvaluationSummary*> newest_evaluations(const SubmissionSummary& submission) {
  std::map<std::pair<std::string, std::string>, const EvaluationSummary*> newest;
  for (const EvaluationSummary& one : submission.evaluations) {
    newest[{one.terms->challenge, one.terms->device_kind}] = &one;
  }
  std::vector<const EvaluationSummary*> found;
  for (const auto& [of, one] : newest) found.push_back(one);
  return found;
}

// Whether some judge had such a device.
bool is_judged_on(const ContestView& view, const std::string& gpu) {
  const auto& boards = view.pages.boards();
  return std::any_of(boards.begin(), boards.end(), [&](const Leaderboard& board) {
    return names_device(gpu, board.variant.arch, board.variant.device_kind);
  });
}

bool has_all(const SubmissionSummary& submission, const std::vector<std::string>& wanted) {
  if (submission.evaluations.empty()) return false;
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& challenge) {
    return std::any_of(
        submission.evaluations.begin(), submission.evaluations.end(),
        [&](const EvaluationSummary& one) { return one.terms->challenge == challenge; });
  });
}

}  // namespace

Json submission_answer(const ContestView& view, const StoredSubmission& submission,
                       const std::vector<std::string>& wanted, const std::string& url) {
  const SubmissionIdentity& identity = submission.identity;
  const SubmissionSummary* seen = view.find(identity.number);
  const std::size_t evaluations = submission.evaluations.size();
  const bool behind = seen == nullptr || seen->stored.evaluations.size() < evaluations;
  // One that cannot be read gets no second verdict; its page says so.
  const bool damaged = !behind && seen->evaluations.size() < evaluations;
  const bool done = !behind && (damaged || has_all(*seen, wanted));
  const bool judging = !done && (is_judged(submission.folder) || (behind && evaluations > 0));

  const int newest = submission.evaluations.empty() ? 1 : submission.evaluations.back();
  Json::Object answer = {{"number", whole(identity.number)},
                         {"id", text(identity.id)},
                         {"run", text(identity.run)},
                         {"challenge", text(identity.challenge)},
                         {"file", text(identity.name)},
                         {"sha256", text(identity.sha256)},
                         {"received", text(identity.received)},
                         {"url", text(page_url(url, evaluation_address(identity.number, newest)))},
                         {"state", text(done      ? "done"
                                        : judging ? "judging"
                                                  : "waiting")}};
  if (identity.variant != VariantRequest{}) {
    answer.push_back({"variant", text(request_text(identity.variant))});
  }
  if (!done) {
    const auto position = view.positions.find(identity.number);
    const bool known = !judging && position != view.positions.end();
    if (known) answer.push_back({"position", whole(position->second)});
    const std::string& gpu = identity.variant.gpu;
    if (!judging && !gpu.empty() && !is_judged_on(view, gpu)) {
      answer.push_back({"waits_for", text(gpu)});
    }
    const auto running = judging ? read_running(submission.folder) : std::nullopt;
    if (running) answer.push_back({"step", text(text_of(*running))});
    answer.push_back({"poll_s", whole(known && position->second > 5 ? 5 : 1)});
    return Json{std::move(answer)};
  }
  Json::List list;
  for (const EvaluationSummary* one : newest_evaluations(*seen)) {
    list.push_back(evaluation_answer(view, *seen, *one, url));
  }
  answer.push_back({"evaluations", Json{std::move(list)}});
  return Json{std::move(answer)};
}

Json leaderboard_answer(const ContestView& view, const std::string& challenge,
                        const std::string& url) {
  Json::List boards;
  for (const Leaderboard& board : view.pages.boards()) {
    const Variant& variant = board.variant;
    if (variant.challenge != challenge) continue;
    Json::Object answer = {
        {"version", whole(variant.version)}, {"challenge_sha256", text(variant.sha256)},
        {"arch", text(variant.arch)},        {"device_kind", text(variant.device_kind)},
        {"method", whole(variant.method)},   {"url", text(page_url(url, board.address))}};
    if (!variant.dtype.empty()) answer.push_back({"dtype", text(variant.dtype)});
    if (!variant.shape.empty()) answer.push_back({"shape", text(variant.shape)});
    const auto row_answer = [&](const LeaderboardRow& row) {
      return Json::Object{
          {"run", text(row.submission->stored.identity.run)},
          {"submission", whole(row.key.submission)},
          {"evaluation", whole(row.key.evaluation)},
          {"url", text(page_url(url, evaluation_address(row.key.submission, row.key.evaluation)))}};
    };
    const auto add_score = [&](Json::Object& one, const Score& score) {
      one.push_back({"speedup", Json{score.speedup}});
      one.push_back({"interval", Json{Json::Object{{"low", Json{score.interval.low}},
                                                   {"high", Json{score.interval.high}}}}});
    };
    Json::List rows, pending, unranked;
    for (const LeaderboardRow& row : board.rows) {
      Json::Object one = row_answer(row);
      one.push_back({"rank", whole(row.ranked.rank)});
      one.push_back({"tie_group", whole(row.ranked.tie_group)});
      add_score(one, row.ranked.entry.score);
      rows.push_back(Json{std::move(one)});
    }
    for (const LeaderboardRow& row : board.pending) {
      Json::Object one = row_answer(row);
      add_score(one, row.ranked.entry.score);
      pending.push_back(Json{std::move(one)});
    }
    for (const LeaderboardRow& row : board.others) {
      Json::Object one = row_answer(row);
      one.push_back({"verdict", text(std::string(name(row.evaluation->verdict)))});
      const VariantRequest& partial = row.evaluation->variant;
      if (!partial.all_shapes()) one.push_back({"variant", text(request_text(partial))});
      unranked.push_back(Json{std::move(one)});
    }
    answer.push_back({"rows", Json{std::move(rows)}});
    answer.push_back({"pending", Json{std::move(pending)}});
    answer.push_back({"unranked", Json{std::move(unranked)}});
    boards.push_back(Json{std::move(answer)});
  }
  return Json{Json::Object{{"challenge", text(challenge)}, {"boards", Json{std::move(boards)}}}};
}

Json::Object challenge_answer(const Challenge& challenge, const std::string& url) {
  Json::List shapes;
  for (const Shape& shape : challenge.shapes) {
    shapes.push_back(Json{Json::Object{{"name", text(shape.name)},
                                       {"timed", Json{shape.timed}},
                                       {"arch", text(shape.arch)},
                                       {"dtype", text(shape.dtype)}}});
  }
  Json::Object answer = {
      {"name", text(challenge.name)},
      {"version", whole(challenge.version)},
      {"title", text(challenge.title)},
      {"sha256", text(challenge.sha256)},
      {"submission_bytes", whole(static_cast<std::int64_t>(challenge.limits.submission_bytes))},
      {"url", text(page_url(url, challenge_address(challenge.name, challenge.version)))},
      {"shapes", Json{std::move(shapes)}}};
  if (!challenge.bounty.empty()) answer.push_back({"bounty", text(challenge.bounty)});
  if (challenge.target_ns) answer.push_back({"target_us", Json{*challenge.target_ns / 1000}});
  return answer;
}

}  // namespace kjudge
