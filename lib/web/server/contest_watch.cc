// SPDX-License-Identifier: Apache-2.0
#include "web/server/contest_watch.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "error.h"
#include "store/numbered_folders.h"
#include "store/restore_runs.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(1000);      // between two looks
constexpr auto kShortPause = std::chrono::milliseconds(200);  // when something was handed in
constexpr auto kLongPause = std::chrono::seconds(20);         // however busy the machine is
constexpr auto kAnyway = std::chrono::seconds(60);  // profiles that come later change no index

// From 1.
std::map<int, int> positions_in(const Site& site) {
  std::map<int, int> positions;
  for (const SubmissionSummary& one : site.submissions) {
    if (one.running && one.running->ahead) {
      positions[one.stored.identity.number] = *one.running->ahead + 1;
    }
  }
  return positions;
}

}  // namespace

ContestView::ContestView(Site&& read, const ResultsDirectory::Report& report)
    : site(std::move(read)), pages(site, report), positions(positions_in(site)) {}

const SubmissionSummary* ContestView::find(int number) const {
  const auto at = std::lower_bound(
      site.submissions.begin(), site.submissions.end(), number,
      [](const SubmissionSummary& a, int wanted) { return a.stored.identity.number < wanted; });
  return at != site.submissions.end() && at->stored.identity.number == number ? &*at : nullptr;
}

ContestWatch::ContestWatch(const ResultsDirectory& results, std::vector<Challenge> challenges,
                           ResultsDirectory::Report report)
    : results_(results), report_(report), reader_(results, std::move(challenges), report) {
  read();
  // What folders and versions without tokens brought stays the organizer's, and what was lost goes
  // to no other token.
  restore_runs(results, reader_.index(), [](const Run&) {});
  thread_ = std::thread([this] { run(); });
}

ContestWatch::~ContestWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<const ContestView> ContestWatch::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

void ContestWatch::wake() {
  {
    const std::lock_guard lock(mutex_);
    awake_ = true;
  }
  changed_.notify_all();
}

std::optional<int> ContestWatch::find_id(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto at = numbers_.find(id);
  return at != numbers_.end() ? std::optional(at->second) : std::nullopt;
}

std::optional<std::string> ContestWatch::id_of(int number) const {
  const std::lock_guard lock(mutex_);
  const auto at = ids_.find(number);
  return at != ids_.end() ? std::optional(at->second) : std::nullopt;
}

void ContestWatch::note(int number, const std::string& id) {
  const std::lock_guard lock(mutex_);
  ids_[number] = id;
  numbers_.try_emplace(id, number);
  while (ids_.contains(known_up_to_ + 1)) ++known_up_to_;
}

int ContestWatch::known_up_to() const {
  const std::lock_guard lock(mutex_);
  return known_up_to_;
}

void ContestWatch::read() {
  const fs::path submissions = results_.path() / "submissions";
  const std::vector<int> there = numbered(submissions);
  Site site = reader_.read();
  auto view = std::make_shared<const ContestView>(std::move(site), report_);
  for (const ScoredSubmission& one : reader_.index().submissions()) {
    if (!id_of(one.number)) note(one.number, one.identity.id);
  }
  // What was there before and cannot be read is damaged, and what is gone was lost: the number is
  // taken, its id not known.
  for (int number = known_up_to() + 1; number <= reader_.index().last_number(); ++number) {
    const bool was_there = std::binary_search(there.begin(), there.end(), number);
    const bool is_lost = !was_there && !fs::exists(submissions / std::to_string(number));
    if (!id_of(number) && (was_there || is_lost)) note(number, "");
  }
  const std::lock_guard lock(mutex_);
  view_ = std::move(view);
}

void ContestWatch::run() {
  // Those who wait for an answer go first, and threads that this one starts are like it.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
  Clock::duration took{};
  auto last_read = Clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      // A large directory takes no more than a tenth of the time, where the machine is not so busy
      // that whoever waits for a verdict would wait for minutes.
      const auto begin = Clock::now();
      const auto pause = std::clamp<Clock::duration>(9 * took, kPause, kLongPause);
      const auto least = std::clamp<Clock::duration>(9 * took, kShortPause, kLongPause);
      changed_.wait_until(lock, begin + pause, [&] { return awake_ || ending_; });
      changed_.wait_until(lock, begin + least, [&] { return ending_; });
      if (ending_) return;
      awake_ = false;
    }
    const auto begin = Clock::now();
    try {
      if (reader_.look() || begin - last_read > kAnyway) {
        read();
        last_read = begin;
        ::malloc_trim(0);  // of the view before, megabytes in a large directory
      }
    } catch (const Error& error) {
      report_(error);
    } catch (const std::exception& error) {
      report_(Error(Fault::host, error.what()));
    }
    took = Clock::now() - begin;
  }
}

}  // namespace kjudge
