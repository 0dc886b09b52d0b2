// SPDX-License-Identifier: Apache-2.0
#include "web/site_pages.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "error.h"
#include "file.h"
#include "store/running.h"
#include "web/assets.h"
#include "web/pages.h"

namespace kjudge {

namespace fs = std::filesystem;

SitePages::SitePages(const Site& site, ResultsDirectory::Report report)
    : site_(site), report_(std::move(report)), boards_(make_leaderboards(site)) {
  relate();
  list();
}

SitePages::SitePages(const Site& site, ResultsDirectory::Report report, int submission)
    : site_(site), report_(std::move(report)), boards_(make_leaderboards(site)) {
  relate();
  list_about(submission);
}

void SitePages::relate() {
  for (const Leaderboard& board : boards_) board_of_[board.variant] = &board;
  using Words = std::string_view;
  std::map<std::tuple<Words, Terms, Words, Words>, EvaluationKey> last_of;
  for (const SubmissionSummary& submission : site_.submissions) {
    for (const EvaluationSummary& evaluation : submission.evaluations) {
      const EvaluationKey key{submission.stored.identity.number, evaluation.number};
      all_.emplace_hint(all_.end(), key, Found{&submission, &evaluation});
      if (!evaluation.kernels.empty()) same_kernels_[evaluation.kernels].push_back(key);
      if (!evaluation.timed) continue;
      // Ascending, so what is there now is the newest before this one.
      auto& before = last_of[{submission.stored.identity.run, *evaluation.terms,
                              evaluation.variant.dtype, evaluation.variant.shape}];
      if (before.submission != 0) previous_.emplace_hint(previous_.end(), key, before);
      before = key;
    }
  }
}

void SitePages::list() {
  add_assets();
  std::set<std::string> runs;
  std::set<std::pair<std::string, int>> challenges;
  for (const Challenge& one : site_.challenges) challenges.emplace(one.name, one.version);
  for (const SubmissionSummary& submission : site_.submissions) {
    runs.insert(submission.stored.identity.run);
    for (const EvaluationSummary& evaluation : submission.evaluations) {
      challenges.emplace(evaluation.terms->challenge, evaluation.terms->challenge_version);
    }
    add_submission(submission);
  }
  for (const SubmissionSummary& submission : site_.submissions) {
    if (!submission.published) continue;
    add(code_address(submission.stored.identity.number), CodeSource{&submission});
  }
  for (const std::string& run : runs) add(run_address(run), RunSource{run});
  for (const Leaderboard& board : boards_) add(board.address, BoardSource{&board});
  for (const auto& [challenge, version] : challenges) {
    add(challenge_address(challenge, version), ChallengeSource{challenge, version});
  }
  add("index.html", FrontSource{});
}

void SitePages::list_about(int number) {
  const auto found = all_.lower_bound({number, 0});
  if (found == all_.end() || found->first.submission != number) return;
  const SubmissionSummary& submission = *found->second.submission;
  std::set<std::pair<std::string, int>> challenges;
  for (const EvaluationSummary& evaluation : submission.evaluations) {
    challenges.emplace(evaluation.terms->challenge, evaluation.terms->challenge_version);
  }
  add_assets();
  add_submission(submission);
  for (const EvaluationKey& key : same_kernels_as(site_, number)) add_evaluation(key);
  if (submission.published) add(code_address(number), CodeSource{&submission});
  const std::string& run = submission.stored.identity.run;
  add(run_address(run), RunSource{run});
  for (const Leaderboard& board : boards_) {
    if (challenges.contains({board.variant.challenge, board.variant.version}))
      add(board.address, BoardSource{&board});
  }
  for (const auto& [challenge, version] : challenges) {
    add(challenge_address(challenge, version), ChallengeSource{challenge, version});
  }
  add("index.html", FrontSource{});
}

void SitePages::add_assets() {
  add("kjudge.css", AssetSource{page_stylesheet()});
  add("kjudge.js", AssetSource{page_script()});
  add("kjudge.svg", AssetSource{page_icon()});
}

void SitePages::add_submission(const SubmissionSummary& submission) {
  const int number = submission.stored.identity.number;
  for (const EvaluationSummary& evaluation : submission.evaluations) {
    add_evaluation({number, evaluation.number});
  }
  if (submission.running) {
    add(evaluation_address(number, submission.next_number()), RunningSource{&submission});
  }
}

void SitePages::add(std::string address, Source source) {
  const auto [at, is_new] = sources_.try_emplace(std::move(address), std::move(source));
  if (is_new) order_.push_back(&at->first);
}

void SitePages::add_evaluation(const EvaluationKey& key) {
  for (const std::string& shape : all_.at(key).evaluation->profiled) {
    add(profile_address(key.submission, key.evaluation, shape, ".csv"),
        ProfileSource{key, shape, true});
    add(profile_address(key.submission, key.evaluation, shape), ProfileSource{key, shape, false});
  }
  if (const auto previous = previous_.find(key); previous != previous_.end()) {
    add(comparison_address(previous->second, key), ComparisonSource{previous->second, key});
  }
  if (const auto best = best_beside(key)) {
    add(comparison_address(*best, key), ComparisonSource{*best, key});
  }
  add(evaluation_address(key.submission, key.evaluation), EvaluationSource{key});
}

// The leader, where that is neither this one nor the one before it.
std::optional<EvaluationKey> SitePages::best_beside(const EvaluationKey& key) const {
  const EvaluationSummary& evaluation = *all_.at(key).evaluation;
  const Leaderboard* board = board_of(evaluation);
  if (!evaluation.timed || board == nullptr || board->rows.empty()) return {};
  const EvaluationKey best = board->rows.front().key;
  const auto previous = previous_.find(key);
  if (best == key || (previous != previous_.end() && previous->second == best)) return {};
  return best;
}

const Leaderboard* SitePages::board_of(const EvaluationSummary& evaluation) const {
  const auto board = board_of_.find(variant_of(evaluation));
  return board != board_of_.end() ? board->second : nullptr;
}

void SitePages::each(const std::function<void(const std::string&)>& take) const {
  for (const std::string* address : order_) take(*address);
}

std::optional<std::string> SitePages::render(const std::string& address) const {
  const auto source = sources_.find(address);
  if (source == sources_.end()) return std::nullopt;
  return std::visit([&](const auto& of) { return render(of); }, source->second);
}

std::string SitePages::render(const AssetSource& source) const { return std::string(source.text); }

std::string SitePages::render(const ProfileSource& source) const {
  const Found& found = all_.at(source.key);
  for (const Profile& profile : read_profiles(site_.folder_of(*found.submission),
                                              source.key.evaluation, [](const auto&) {})) {
    if (profile.shape != source.shape) continue;
    if (source.csv) return profile_csv(profile);
    return profile_page(source.key, found.submission->stored.identity.run, profile);
  }
  throw Error(Fault::malformed, cat("submission ", source.key.submission, ": the profile of ",
                                    source.shape, " cannot be read any more"));
}

std::string SitePages::render(const ComparisonSource& source) const {
  const auto compared = [&](const EvaluationKey& key) -> ComparedEvaluation {
    const Found& found = all_.at(key);
    std::vector<Profile> profiles;
    if (!found.evaluation->profiled.empty())
      profiles = read_profiles(site_.folder_of(*found.submission), key.evaluation, report_);
    Evaluation facts = read_evaluation(site_.folder_of(*found.submission), key.evaluation);
    Score scored = score(facts);
    set_unverified(found.submission->stored.identity, scored);
    return {key, found.submission->stored.identity.run, std::move(facts), std::move(scored),
            std::move(profiles)};
  };
  return comparison_page(compared(source.left), compared(source.right));
}

std::string SitePages::render(const EvaluationSource& source) const {
  const Found& found = all_.at(source.key);
  const Evaluation evaluation =
      read_evaluation(site_.folder_of(*found.submission), source.key.evaluation);
  Score scored = score(evaluation);
  set_unverified(found.submission->stored.identity, scored);
  EvaluationPage page{*found.submission, *found.evaluation, evaluation, scored, {}, {}, {}, {}, {}};
  const auto same = same_kernels_.find(found.evaluation->kernels);
  if (same != same_kernels_.end()) {
    page.same_kernels = same->second;
    std::erase_if(page.same_kernels, [&](const EvaluationKey& key) {
      return key.submission == source.key.submission;  // judged again from its recording
    });
  }
  if (const Leaderboard* board = board_of(*found.evaluation)) page.board = board->address;
  const auto previous = previous_.find(source.key);
  if (previous != previous_.end()) page.previous = previous->second;
  page.best = best_beside(source.key);
  page.challenge = site_.challenge_of(*found.evaluation->terms);
  return evaluation_page(page);
}

// A moment ago it may have waited.
std::string SitePages::render(const RunningSource& source) const {
  SubmissionSummary now = *source.submission;
  if (const auto running = read_running(site_.folder_of(now))) now.running = running;
  return running_page(now);
}

// What is damaged is for fsck to tell.
std::string SitePages::render(const CodeSource& source) const {
  constexpr std::size_t kLargestFile = 1 << 20;
  const fs::path folder = site_.folder_of(*source.submission) / "files";
  std::vector<std::pair<std::string, std::string>> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_regular_file() || at->is_symlink()) continue;
    const bool small = at->file_size() <= kLargestFile;
    files.emplace_back(at->path().lexically_relative(folder).string(),
                       small ? read_file(at->path()) : "(larger than a page)");
  }
  std::sort(files.begin(), files.end());
  return code_page(*source.submission, files);
}

std::string SitePages::render(const RunSource& source) const { return run_page(site_, source.run); }

std::string SitePages::render(const BoardSource& source) const {
  return leaderboard_page(*source.board, boards_);
}

std::string SitePages::render(const ChallengeSource& source) const {
  std::string task;
  const Challenge* challenge = site_.challenge(source.name, source.version);
  if (challenge != nullptr) {
    try {
      task = read_file(challenge->folder / "TASK.md", 1 << 20);
    } catch (const Error& error) {
      report_(error);
    }
  }
  return challenge_page(site_, boards_, source.name, source.version, task);
}

std::string SitePages::render(const FrontSource&) const { return front_page(site_, boards_); }

}  // namespace kjudge
