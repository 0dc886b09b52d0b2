// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "error.h"
#include "judge/report.h"
#include "web/fragments.h"
#include "web/pages.h"

namespace kjudge {
namespace {

constexpr const char* kFront = "index.html";
constexpr std::size_t kNewest = 25;

struct Listed {
  const SubmissionSummary* submission;
  const EvaluationSummary* evaluation;
};

// Name and version of every challenge that there is something of, newest version first.
std::vector<std::pair<std::string, int>> challenges_in(const Site& site) {
  std::set<std::pair<std::string, int>> found;
  for (const Challenge& one : site.challenges) found.emplace(one.name, one.version);
  for (const SubmissionSummary& submission : site.submissions) {
    for (const EvaluationSummary& evaluation : submission.evaluations) {
      found.emplace(evaluation.terms->challenge, evaluation.terms->challenge_version);
    }
  }
  std::vector<std::pair<std::string, int>> list(found.begin(), found.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  return list;
}

Html leaders_table(const std::vector<Leaderboard>& boards) {
  Table table;
  table.caption = "Leaderboards";
  table.columns = {"Challenge", "Variant", "Runs", "Best speedup", "By"};
  table.numeric = {false, false, true, true, false};
  for (const Leaderboard& board : boards) {
    std::vector<Cell> row = {
        heading_cell(link(kFront, challenge_address(board.variant.challenge, board.variant.version),
                          cat(board.variant.challenge, " version ", board.variant.version))),
        text_cell(link(kFront, board.address, variant_name(board.variant))),
        number_cell(std::to_string(board.rows.size()))};
    if (board.rows.empty()) {
      row.push_back(number_cell("–"));
      row.push_back(text_cell("nobody yet"));
    } else {
      const Entry& best = board.rows.front().ranked.entry;
      row.push_back(number_cell(times_text(best.score.speedup)));
      row.push_back(text_cell(link(kFront, run_address(best.run), person(best.run))));
    }
    table.rows.push_back(std::move(row));
  }
  return table_element(table);
}

Html newest_table(const Site& site) {
  std::vector<Listed> listed;
  for (const SubmissionSummary& submission : site.submissions) {
    for (const EvaluationSummary& evaluation : submission.evaluations)
      listed.push_back({&submission, &evaluation});
  }
  const auto key = [](const Listed& one) {
    return std::tuple(-one.submission->stored.identity.number, -one.evaluation->number);
  };
  const auto end = listed.begin() + static_cast<std::ptrdiff_t>(std::min(listed.size(), kNewest));
  std::partial_sort(listed.begin(), end, listed.end(), [&](const Listed& a, const Listed& b) {
    const std::string &one = a.evaluation->started, &other = b.evaluation->started;
    return one != other ? one > other : key(a) < key(b);
  });
  listed.erase(end, listed.end());
  Table table;
  table.caption = "Newest evaluations";
  table.columns = {"Submission", "Run", "Verdict", "Speedup", "Started"};
  table.numeric = {true, false, false, true, false};
  for (const auto& [submission, evaluation] : listed) {
    const SubmissionIdentity& identity = submission->stored.identity;
    table.rows.push_back(
        {number_cell(link(kFront, evaluation_address(identity.number, evaluation->number),
                          evaluation_name(identity.number, evaluation->number))),
         text_cell(link(kFront, run_address(identity.run), person(identity.run))),
         text_cell(verdict_badges(*submission, *evaluation)),
         number_cell(evaluation->score.counts ? times_text(evaluation->score.speedup) : "–"),
         text_cell(time_element(evaluation->started))});
  }
  return table_element(table);
}

Html waiting_table(const Site& site) {
  Table table;
  table.caption = "Waiting";
  table.columns = {"Submission", "Run", "Handed in"};
  table.numeric = {true, false, false};
  for (const SubmissionSummary& submission : site.submissions) {
    if (!submission.running) continue;
    const SubmissionIdentity& identity = submission.stored.identity;
    table.rows.push_back(
        {number_cell(link(kFront, evaluation_address(identity.number, submission.next_number()),
                          std::to_string(identity.number))),
         text_cell(link(kFront, run_address(identity.run), person(identity.run))),
         text_cell(time_element(identity.received))});
  }
  return table.rows.empty() ? element("p", {}, "Nothing waits to be judged.")
                            : table_element(table);
}

}  // namespace

std::string front_page(const Site& site, const std::vector<Leaderboard>& boards) {
  PageFrame frame;
  const Challenge* only = site.challenges.size() == 1 ? &site.challenges.front() : nullptr;
  frame.title = only != nullptr && !only->title.empty() ? only->title : "Kernel contest";
  frame.address = kFront;
  std::vector<Html> contents;
  for (const Challenge& one : site.challenges) {
    Html line("p", {});
    const std::string& title = one.title.empty() ? one.name : one.title;
    line.add(link(kFront, challenge_address(one.name, one.version),
                  only != nullptr ? "The challenge" : title));
    if (!one.bounty.empty()) line.add(cat(". Bounty: ", one.bounty));
    contents.push_back(std::move(line));
  }
  contents.push_back(section(
      "Standings",
      {boards.empty() ? element("p", {}, "Nothing has been judged yet.") : leaders_table(boards)}));
  contents.push_back(section("Queue", {waiting_table(site)}));
  if (!boards.empty()) contents.push_back(section("Evaluations", {newest_table(site)}));
  if (const auto list = challenges_in(site); list.size() > 1) {
    Html items("ul", {});
    for (const auto& [challenge, version] : list) {
      items.add(element("li", {},
                        link(kFront, challenge_address(challenge, version),
                             cat(challenge, " version ", version))));
    }
    contents.push_back(section("Challenges", {std::move(items)}));
  }
  return framed(frame, std::move(contents));
}

std::string run_page(const Site& site, const std::string& run) {
  PageFrame frame;
  frame.title = run;
  frame.address = run_address(run);
  Table table;
  table.caption = "Submissions, newest first";
  table.columns = {"Submission", "File", "Handed in", "Verdict", "Speedup", "Interval"};
  table.numeric = {true, false, false, false, true, true};
  table.sortable = true;
  const Score* best = nullptr;
  for (auto submission = site.submissions.rbegin(); submission != site.submissions.rend();
       ++submission) {
    const SubmissionIdentity& identity = submission->stored.identity;
    if (identity.run != run) continue;
    const auto begin_row = [&](int evaluation) {
      return std::vector<Cell>{
          number_cell(link(frame.address, evaluation_address(identity.number, evaluation),
                           evaluation_name(identity.number, evaluation)),
                      identity.number + evaluation * 1e-4),
          text_cell(person(identity.name)), text_cell(time_element(identity.received))};
    };
    if (submission->running) {
      auto row = begin_row(submission->next_number());
      row.push_back(text_cell(element("span", {{"class", "badge odd"}}, "waits")));
      row.insert(row.end(), 2, number_cell("–"));
      table.rows.push_back(std::move(row));
    }
    for (auto evaluation = submission->evaluations.rbegin();
         evaluation != submission->evaluations.rend(); ++evaluation) {
      auto row = begin_row(evaluation->number);
      const Score& score = evaluation->score;
      row.push_back(text_cell(verdict_badges(*submission, *evaluation)));
      row.push_back(score.counts ? number_cell(times_text(score.speedup), score.speedup)
                                 : number_cell("–"));
      row.push_back(score.counts ? number_cell(interval_text_of(score.interval), score.interval.low)
                                 : number_cell("–"));
      table.rows.push_back(std::move(row));
      if (score.ranked && evaluation->invalid.empty() &&
          (best == nullptr || score.speedup > best->speedup))
        best = &score;
    }
  }
  std::vector<Html> contents;
  if (best != nullptr) {
    contents.push_back(element("p", {{"class", "headline"}},
                               "Best: ", element("strong", {}, times_text(best->speedup)),
                               cat(" (", interval_text_of(best->interval), ")")));
  }
  contents.push_back(table_element(table));
  return framed(frame, std::move(contents));
}

}  // namespace kjudge
