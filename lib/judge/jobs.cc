// SPDX-License-Identifier: Apache-2.0
#include "judge/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <set>

#include "error.h"
#include "file.h"
#include "judge/interrupt.h"

namespace kjudge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kOrderlyEnd = std::chrono::seconds(20);  // after an interrupt
constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::size_t kRemembered = 1000;  // lines

struct Pipe {
  Fd reading, writing;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
};

class Job {
 public:
  explicit Job(const std::vector<std::string>& arguments) {
    Pipe output, talk;
    ChildOptions options;
    options.program = std::filesystem::read_symlink("/proc/self/exe");
    options.arguments = arguments;
    options.descriptors = {{output.writing.get(), STDOUT_FILENO},
                           {talk.writing.get(), STDERR_FILENO}};
    child_.emplace(options);
    output_ = std::move(output.reading);
    talk_ = std::move(talk.reading);
  }

  Fd& output() { return output_; }
  Fd& talk() { return talk_; }

  void read_output() { read_into(output_, end_.output); }

  template <class Take>
  void read_talk(const Take& take) {
    read_into(talk_, said_);
    for (std::size_t end; (end = said_.find('\n')) != said_.npos; said_.erase(0, end + 1)) {
      take(said_.substr(0, end));
    }
    if (said_.size() > kLongestLine || (!talk_.valid() && !said_.empty())) {
      take(std::exchange(said_, {}));
    }
  }

  void signal(int number) const { ::kill(child_->pid(), number); }
  bool wait(Clock::time_point deadline) {
    const auto status = child_->wait(deadline);
    if (status) end_.status = *status;
    return status.has_value();
  }
  JobEnd take_end() { return std::move(end_); }

 private:
  // At its end, closes it.
  static void read_into(Fd& from, std::string& text) {
    std::array<char, 1 << 16> block;
    const ssize_t n = ::read(from.get(), block.data(), block.size());
    if (n < 0 && errno != EINTR) throw_errno("the output of a judge");
    if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
    if (n == 0) from.reset();
  }

  std::optional<Child> child_;
  Fd output_, talk_;
  std::string said_;
  JobEnd end_;
};

class Lines {
 public:
  explicit Lines(const ReportLine& report) : report_(report) {}

  void operator()(std::string text) {
    constexpr std::string_view kPrefix = "kjudge: ";
    if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
    const auto [at, is_new] = said_.insert(std::move(text));
    if (!is_new) return;
    report_(*at);
    order_.push_back(at);
    if (order_.size() <= kRemembered) return;
    said_.erase(order_.front());
    order_.pop_front();
  }

 private:
  const ReportLine& report_;
  std::set<std::string> said_;
  std::deque<std::set<std::string>::iterator> order_;
};

void follow(std::deque<Job>& jobs, const ReportLine& report) {
  Lines lines(report);
  for (;;) {
    check_interrupt();
    std::vector<pollfd> polled;
    for (Job& job : jobs) {
      for (const Fd* fd : {&job.output(), &job.talk()}) polled.push_back({fd->get(), POLLIN, 0});
    }
    bool any = false;
    for (const pollfd& one : polled) any = any || one.fd >= 0;
    if (!any) return;
    if (::poll(polled.data(), polled.size(), 100) < 0 && errno != EINTR) throw_errno("poll");
    std::size_t at = 0;
    for (Job& job : jobs) {
      if (polled[at++].revents != 0) job.read_output();
      if (polled[at++].revents != 0)
        job.read_talk([&](std::string text) { lines(std::move(text)); });
    }
  }
}

}  // namespace

std::vector<JobEnd> run_jobs(const std::vector<std::vector<std::string>>& jobs,
                             const ReportLine& report) {
  std::deque<Job> running;
  for (const auto& arguments : jobs) running.emplace_back(arguments);
  try {
    follow(running, report);
    for (Job& job : running) {
      while (!job.wait(Clock::now() + std::chrono::milliseconds(100))) check_interrupt();
    }
  } catch (const Interrupted& interrupted) {
    const auto deadline = Clock::now() + kOrderlyEnd;
    for (Job& job : running) job.signal(interrupted.signal);
    for (Job& job : running) job.wait(deadline);
    throw;
  }
  std::vector<JobEnd> ends;
  for (Job& job : running) ends.push_back(job.take_end());
  return ends;
}

}  // namespace kjudge
