// SPDX-License-Identifier: Apache-2.0
#include "web/publisher.h"

#include <utility>

#include "error.h"
#include "file.h"
#include "store/numbered_folders.h"
#include "web/pages.h"
#include "web/site_pages.h"
#include "web/write_site.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostWaiting = 200;  // that get a page, and get it again at each turn

bool is_own(const std::string& address) {
  return address.starts_with("evaluation/") || address.starts_with("profile/") ||
         address.starts_with("kjudge.");  // what every page refers to
}

std::size_t evaluations_in(const ScoreIndex& index) {
  std::size_t count = 0;
  for (const ScoredSubmission& one : index.submissions()) count += one.evaluations.size();
  return count;
}

}  // namespace

template <class Body>
void Publisher::attempt(const Body& body) {
  std::string failure;
  try {
    return body();
  } catch (const Error& error) {
    failure = error.what();
  } catch (const fs::filesystem_error& error) {
    failure = error.what();
  }
  if (!std::exchange(told_, true)) report_(cat("pages: ", failure, "; judging goes on"));
}

Publisher::Publisher(const ResultsDirectory& results, fs::path output,
                     std::vector<Challenge> challenges, ReportLine report, std::size_t most)
    : results_(results),
      output_(std::move(output)),
      marks_(output_ / ".kjudge-running"),
      challenges_(std::move(challenges)),
      report_(std::move(report)),
      most_(most) {
  attempt([&] {
    fs::create_directories(marks_);
    if (!has_site(output_) && evaluations_in(reader().index()) <= most_) {
      write_site(reader().read(), output_, left_out());
    }
  });
}

Publisher::~Publisher() {
  if (!judging_) return;
  attempt([&] {
    const StoredSubmission now = results_.submission(judging_->identity.number);
    // Unless another judge took over.
    if (is_judged(now.folder) || now.evaluations != judging_->evaluations) return;
    put_running(now, {.ahead = 0});
  });
}

ResultsDirectory::Report Publisher::left_out() const {
  return [this](const Error& error) { report_(described(error)); };
}

SiteReader& Publisher::reader() {
  if (!reader_) reader_.emplace(results_, challenges_, left_out());
  return *reader_;
}

void Publisher::waiting(const std::vector<Waiting>& waiting) {
  std::set<int> numbers;
  for (const Waiting& one : waiting) {
    const int place = static_cast<int>(numbers.size());
    const int number = one.submission->number;
    if (!numbers.insert(number).second || numbers.size() > kMostWaiting) continue;
    const auto [known, is_new] = places_.try_emplace(number, place);
    if (!is_new && known->second == place) continue;
    known->second = place;
    attempt([&] {
      const StoredSubmission submission = results_.submission(number);
      // Another judge took it meanwhile, and shows it.
      if (is_judged(submission.folder) ||
          submission.evaluations.size() != one.submission->evaluations.size()) {
        return;
      }
      put_running(submission, {.ahead = place});
    });
  }
  if (!looked_) attempt([&] { put_right(numbers); });
  looked_ = true;
}

void Publisher::running(const StoredSubmission& submission, const RunningEvaluation& running) {
  judging_ = submission;
  places_.erase(submission.identity.number);
  attempt([&] {
    RunningEvaluation now = running;
    if (now.step == RunningEvaluation::Step::queued) now.ahead = 0;
    put_running(submission, now);
  });
}

void Publisher::judged(int submission) {
  judging_.reset();
  places_.erase(submission);
  attempt([&] { put_judged(submission); });
}

// Not synced: the next step, or the next judge, writes it anyway.
void Publisher::put_running(const StoredSubmission& submission, const RunningEvaluation& running) {
  SubmissionSummary summary;
  summary.stored = submission;
  summary.running = running;
  const int number = submission.identity.number;
  replace_file(marks_ / std::to_string(number), "");
  const fs::path page = output_ / evaluation_address(number, summary.next_number());
  fs::create_directories(page.parent_path());
  replace_file(page, running_page(summary));
  told_ = false;
}

void Publisher::put_judged(int submission) {
  const bool alone = !has_site(output_);
  const Site site = reader().read_about(submission);
  const SitePages pages(site, left_out(), submission);
  pages.each([&](const std::string& address) {
    if (alone && !is_own(address)) return;
    if (const auto page = pages.render(address)) put_page(output_, address, *page);
  });
  const auto next = results_.submission(submission);
  const std::string address =
      evaluation_address(submission, next.evaluations.empty() ? 1 : next.evaluations.back() + 1);
  // Nor the code, where what it was judged for now does not allow that.
  for (const std::string& old : {address, code_address(submission)}) {
    if (!pages.has(old)) fs::remove(output_ / old);
  }
  fs::remove(marks_ / std::to_string(submission));
  told_ = false;
}

void Publisher::put_right(const std::set<int>& waiting) {
  for (const int number : numbered(marks_)) {
    if (waiting.contains(number)) continue;
    attempt([&] {
      const StoredSubmission submission = results_.submission(number);
      if (!submission.evaluations.empty() && !is_judged(submission.folder)) put_judged(number);
    });
  }
}

}  // namespace kjudge
