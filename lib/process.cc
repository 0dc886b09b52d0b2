// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/src.hpp>
#include <boost/process/v2/start_dir.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "error.h"

namespace kjudge {
namespace {

namespace process = boost::process::v2;
using Clock = std::chrono::steady_clock;

std::set<pid_t> children_of_this_process() {
  std::set<pid_t> children;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(task.path() / "children");
    for (pid_t pid; file >> pid;) children.insert(pid);
  }
  return children;
}

// While this lives, whatever its child started comes to this process when its parent ends, in
// whatever session it hides; when this goes, all of that ends.
class Descendants {
 public:
  Descendants() : before_(children_of_this_process()) { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  Descendants(const Descendants&) = delete;
  Descendants& operator=(const Descendants&) = delete;
  ~Descendants() {
    for (bool any = true; any;) {
      any = false;
      for (const pid_t pid : children_of_this_process()) {
        if (before_.contains(pid)) continue;
        any = true;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

 private:
  std::set<pid_t> before_;
};

// Runs in the child between fork and exec.
struct OwnGroupThatDiesWithUs {
  pid_t parent;

  template <class Launcher>
  process::error_code on_exec_setup(Launcher&, const process::filesystem::path&,
                                    const char* const*&) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the prctl
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }
};

// Before OwnGroupThatDiesWithUs: a change of the user would undo its prctl.
struct CallersPart {
  const std::function<int()>& before_exec;

  template <class Launcher>
  process::error_code on_exec_setup(Launcher&, const process::filesystem::path&,
                                    const char* const*&) {
    const int error = before_exec ? before_exec() : 0;
    return {error, boost::system::system_category()};
  }
};

// What Boost's bind_fd does: in 1.81 its on_setup returns nothing, which is undefined and crashes
// at -O3.
struct OtherDescriptors {
  std::vector<std::pair<int, int>> wanted;  // (ours, theirs)

  template <class Launcher>
  process::error_code on_setup(Launcher& launcher, const process::filesystem::path&,
                               const char* const*&) {
    for (const auto& [ours, theirs] : wanted) launcher.fd_whitelist.push_back(theirs);
    return {};
  }
  template <class Launcher>
  process::error_code on_exec_setup(Launcher&, const process::filesystem::path&,
                                    const char* const*&) {
    // By way of high numbers, so that none is overwritten before it has been copied.
    for (auto& [ours, theirs] : wanted) ours = ::fcntl(ours, F_DUPFD_CLOEXEC, 64);
    for (const auto& [ours, theirs] : wanted) {
      if (::dup2(ours, theirs) < 0) return {errno, boost::system::system_category()};
    }
    return {};
  }
};

std::vector<process::environment::key_value_pair> environment_of(const ChildOptions& options) {
  std::vector<process::environment::key_value_pair> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!options.environment.contains(std::string(text.substr(0, text.find('='))))) {
      environment.emplace_back(text.data());
    }
  }
  for (const auto& [key, value] : options.environment) {
    if (!value.empty())
      environment.emplace_back(process::environment::key(key), process::environment::value(value));
  }
  return environment;
}

// A pidfd becomes readable when the child ends: waiting with a deadline, without a signal handler.
std::optional<int> wait_status(pid_t pid, Clock::time_point deadline) {
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) throw_errno("pidfd_open");
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd polled{pidfd.get(), POLLIN, 0};
    const int ready =
        ::poll(&polled, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) throw_errno("poll");
    if (ready > 0) break;
    if (ready == 0 && Clock::now() >= deadline) return std::nullopt;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw_errno("waitpid");
  }
  return status;
}

}  // namespace

std::string describe(const ExitStatus& status) {
  if (status.signal != 0) {
    const char* abbreviation = ::sigabbrev_np(status.signal);
    return cat("killed by SIG", abbreviation ? abbreviation : std::to_string(status.signal).c_str(),
               " (", ::strsignal(status.signal), ")");
  }
  return cat("exit status ", status.code);
}

Child::Child(const ChildOptions& options) {
  boost::asio::io_context context;
  process::posix::default_launcher launcher;
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) throw_errno("/dev/null");

  std::array<int, 3> standard = {null.get(), STDOUT_FILENO, STDERR_FILENO};
  OtherDescriptors others;
  for (const auto& [ours, theirs] : options.descriptors) {
    if (theirs < 3) {
      standard[static_cast<std::size_t>(theirs)] = ours;
    } else {
      others.wanted.emplace_back(ours, theirs);
    }
  }
  process::error_code error;
  const auto environment = environment_of(options);
  const process::filesystem::path directory = options.directory.empty()
                                                  ? std::filesystem::current_path().string()
                                                  : options.directory.string();
  CallersPart callers{options.before_exec};
  OwnGroupThatDiesWithUs group{::getpid()};
  const process::filesystem::path program = options.program.string();
  // Not const: an initializer whose hooks take it by non-const reference is skipped in silence.
  process::process_stdio stdio{standard[0], standard[1], standard[2]};
  process::process_start_dir start(directory);
  process::process_environment env(environment);
  const boost::asio::any_io_executor executor = context.get_executor();
  auto started = launcher(executor, error, program, options.arguments, stdio, start, env, others,
                          callers, group);
  if (error) {
    // The launcher forks, and where exec fails leaves the child for us to reap.
    if (launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);
    throw Error(Fault::host, cat(options.program.string(), ": cannot start: ", error.message()));
  }
  pid_ = started.id();
  started.detach();
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(std::move(other.status_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  kill();
  if (!status_) {
    int ignored;
    while (::waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
    }
  }
}

std::optional<ExitStatus> Child::wait(Clock::time_point deadline) {
  if (!status_) {
    const auto status = wait_status(pid_, deadline);
    if (!status) return std::nullopt;
    status_ = WIFSIGNALED(*status) ? ExitStatus{0, WTERMSIG(*status)}
                                   : ExitStatus{WEXITSTATUS(*status), 0};
  }
  return status_;
}

// What the child started and left behind in its group goes too, also after the child has ended.
void Child::kill() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

// Processes that the system has killed for want of memory since it started.
std::optional<std::uint64_t> memory_kills() {
  std::ifstream counts("/proc/vmstat");
  for (std::string line; std::getline(counts, line);) {
    if (line.starts_with("oom_kill ")) return std::strtoull(line.c_str() + 9, nullptr, 10);
  }
  return std::nullopt;
}

Finished run_to_end(const ChildOptions& options, std::chrono::duration<double> limit,
                    std::size_t output_limit, const std::function<bool()>& tick) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  const Fd reading(ends[0]);
  Fd writing(ends[1]);

  ChildOptions with_output = options;
  with_output.descriptors.emplace_back(writing.get(), STDOUT_FILENO);
  with_output.descriptors.emplace_back(writing.get(), STDERR_FILENO);
  const auto kills_before = memory_kills();
  const auto start = Clock::now();
  const auto deadline = start + std::chrono::duration_cast<Clock::duration>(limit);
  const Descendants descendants;
  Child child(with_output);
  writing.reset();

  std::string head, tail;
  std::uint64_t dropped = 0;
  const std::size_t half = output_limit / 2;
  const auto take = [&](std::string_view bytes) {
    const std::size_t to_head = std::min(bytes.size(), half - std::min(head.size(), half));
    head.append(bytes.substr(0, to_head));
    tail.append(bytes.substr(to_head));
    if (tail.size() > 2 * half + 65536) {
      dropped += tail.size() - half;
      tail.erase(0, tail.size() - half);
    }
  };

  // Until the child has ended: someone it started may hold the pipe for longer.
  const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0)));
  if (!ended.valid()) throw_errno("pidfd_open");
  Finished finished;
  std::array<char, 1 << 16> block;
  bool open = true;
  for (;;) {
    if (open) {
      std::array<pollfd, 2> polled = {pollfd{reading.get(), POLLIN, 0},
                                      pollfd{ended.get(), POLLIN, 0}};
      if (::poll(polled.data(), polled.size(), 20) > 0 && polled[0].revents != 0) {
        const ssize_t n = ::read(reading.get(), block.data(), block.size());
        if (n > 0) take({block.data(), static_cast<std::size_t>(n)});
        if (n == 0) open = false;
      }
      finished.status = child.wait(Clock::now());
    } else {
      finished.status =
          child.wait(std::min(deadline, Clock::now() + std::chrono::milliseconds(100)));
    }
    if (finished.status || Clock::now() >= deadline) break;
    if (tick && !tick()) break;
  }
  if (const auto kills = memory_kills(); kills && kills_before) {
    finished.out_of_memory = *kills > *kills_before;
  }
  child.kill();
  finished.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  for (ssize_t n; open && (n = ::read(reading.get(), block.data(), block.size())) > 0;) {
    take({block.data(), static_cast<std::size_t>(n)});
  }
  if (tail.size() > half) {
    dropped += tail.size() - half;
    tail.erase(0, tail.size() - half);
  }
  finished.output =
      dropped > 0 ? cat(head, "\n[... ", dropped, " bytes left out ...]\n", tail) : head + tail;
  return finished;
}

}  // namespace kjudge
