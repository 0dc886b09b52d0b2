// SPDX-License-Identifier: Apache-2.0
#include "store/claim.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "error.h"
#include "file.h"
#include "score/result_json.h"
#include "store/blobs.h"
#include "store/numbered_folders.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLeaseSeconds = 86400;

const FieldTable<Lease>& lease_table() {
  using P = ProcessIdentity;
  using L = Lease;
  constexpr auto kMost = std::int64_t{1} << 53;
  static const FieldTable<P> holder({
      required("host", &P::host, line_kind(1, 256), "name of the machine"),
      required("boot_id", &P::boot_id, line_kind(1, 64), "of the machine since it was started"),
      required("pid_namespace", &P::pid_namespace, integer_kind<std::uint64_t>(0, kMost),
               "which the process number is of: a container has its own"),
      required("pid", &P::pid, integer_kind(1, 1 << 30), "number of the process"),
      required("start_ticks", &P::start_ticks, integer_kind<std::uint64_t>(0, kMost),
               "when the process began, in clock ticks since the start of the machine"),
  });
  static const FieldTable<L> table({
      format_field<L>("kjudge-lease/1"),
      required("attempt", &L::attempt, integer_kind(1, 1 << 30), "number of the claim"),
      required("holder", &L::holder, object_kind(holder), "process that judges"),
      required("seconds", &L::seconds, integer_kind(1, kMostLeaseSeconds),
               "after the file's time of modification, which the holder renews, until another "
               "judge may take over"),
      required("taken", &L::taken, line_kind(1, 40), "UTC, RFC 3339"),
      optional("evaluation", &L::evaluation, integer_kind(0, 1 << 30),
               "number of the evaluation that it stored; absent where there is none, and of an "
               "older kjudge"),
  });
  return table;
}

fs::path claims_of(const fs::path& submission) { return submission / "claims"; }

struct timespec modified(int fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_errno(path.string());
  return status.st_mtim;
}

double seconds_of(const struct timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// By the clock that gives the file its time of modification.
double seconds_since_modified(const fs::path& path) {
  // Opened, not only looked at: NFS asks the server then.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) throw_errno(path.string());
  std::string name = (path.parent_path() / ".now.XXXXXX").string();
  const Fd now(::mkostemp(name.data(), O_CLOEXEC));
  if (!now.valid()) throw_errno(name);
  ::unlink(name.c_str());
  return seconds_of(modified(now.get(), name)) - seconds_of(modified(file.get(), path));
}

// A time in the future is as bad as one long past: the clock was set back, and a holder that lives
// would have renewed it.
bool no_sign_for(int seconds, const fs::path& path) {
  return std::abs(seconds_since_modified(path)) > seconds;
}

bool is_over(const fs::path& claim) {
  const fs::path file = claim / "lease.json";
  std::optional<Lease> lease;
  try {
    lease = read_lease(claim);
  } catch (const Error&) {
    // Whoever holds it renews the file all the same, where there is one.
    const bool has_file = ::access(file.c_str(), R_OK) == 0;
    if (no_sign_for(kMostLeaseSeconds, has_file ? file : claim / "work")) return true;
    throw;
  }
  return has_ended(lease->holder) || no_sign_for(lease->seconds, file);
}

// After this the holder's commit fails.
void drop(const fs::path& claim) {
  std::error_code ignored;
  remove_running(claim);
  const fs::path dropped = claim / "dropped";
  if (::rename((claim / "work").c_str(), dropped.c_str()) != 0 && errno != ENOENT) {
    throw_errno(dropped.string());
  }
  fs::remove_all(dropped, ignored);
}

}  // namespace

JsonFormat lease_json_format() { return json_format(lease_table()); }

Lease read_lease(const fs::path& claim) {
  const fs::path path = claim / "lease.json";
  const std::string file = path.string();
  const Json json = parse_json(read_file(path, 1u << 16), file, Fault::malformed);
  return lease_table().read(JsonCursor(json, file, Fault::malformed));
}

// Touches lease.json until it goes.
class Claim::Renewal {
 public:
  Renewal(const fs::path& lease, std::chrono::seconds seconds)
      : thread_([=](const std::stop_token& stop) {
          const auto period = std::chrono::duration<double>(seconds) / 4;
          std::mutex mutex;
          std::condition_variable_any wake;
          std::unique_lock lock(mutex);
          while (!stop.stop_requested()) {
            wake.wait_for(lock, stop, period, [] { return false; });
            // It fails when the folder is gone, and then the commit will say so.
            if (!stop.stop_requested()) ::utimensat(AT_FDCWD, lease.c_str(), nullptr, 0);
          }
        }) {}

  // The thread made by this one has its signal mask: signals are for the thread that judges.
  static std::unique_ptr<Renewal> start(const fs::path& lease, std::chrono::seconds seconds) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    auto renewal = std::make_unique<Renewal>(lease, seconds);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return renewal;
  }

 private:
  std::jthread thread_;
};

Claim::Claim(fs::path path, int attempt, std::chrono::seconds lease)
    : path_(std::move(path)),
      attempt_(attempt),
      renewal_(Renewal::start(path_ / "lease.json", lease)) {}

Claim::Claim(Claim&&) noexcept = default;

Claim::~Claim() {
  if (renewal_ == nullptr) return;  // moved from
  renewal_.reset();
  try {
    drop(path_);
  } catch (const Error&) {
    // Over when this process has ended.
  }
}

std::optional<int> open_claim(const fs::path& submission) {
  const auto attempts = numbered(claims_of(submission));
  if (attempts.empty()) return std::nullopt;
  const fs::path last = claims_of(submission) / std::to_string(attempts.back());
  return fs::is_directory(last / "work") ? std::optional(attempts.back()) : std::nullopt;
}

std::optional<Claim> Claim::take(const StoredSubmission& submission, std::chrono::seconds lease) {
  const fs::path claims = claims_of(submission.folder);
  fs::create_directories(claims);
  const auto attempts = numbered(claims);
  const int before = attempts.empty() ? 0 : attempts.back();
  if (const auto open = open_claim(submission.folder)) {
    const fs::path path = claims / std::to_string(*open);
    if (!is_over(path)) return std::nullopt;
    drop(path);
  }
  const int attempt = before + 1;
  const fs::path path = claims / std::to_string(attempt);
  const UnfinishedFolder folder(claims);
  fs::create_directory(folder.path() / "work");
  const Lease mine{attempt, this_process(), static_cast<int>(lease.count()), utc_now()};
  write_file_atomically(folder.path() / "lease.json", print_json(Json{lease_table().write(mine)}));
  if (rename_new(folder.path(), path) != Renamed::done) return std::nullopt;
  return Claim(path, attempt, lease);
}

// So that the verdict is missed when it is lost. Nothing else depends on it.
void Claim::note_stored(int evaluation) const {
  try {
    Lease lease = read_lease(path_);
    lease.evaluation = evaluation;
    const UnfinishedFolder folder(path_.parent_path());  // which is swept
    write_file_atomically(folder.path() / "lease.json",
                          print_json(Json{lease_table().write(lease)}));
    fs::rename(folder.path() / "lease.json", path_ / "lease.json");
  } catch (const Error&) {
  } catch (const fs::filesystem_error&) {
  }
}

fs::path Claim::folder() const { return path_ / "work"; }

bool Claim::held() const { return fs::is_directory(folder()); }

std::optional<int> Claim::commit(StoredSubmission& submission, const Evaluation& evaluation,
                                 const std::optional<ReplaySecret>& secret) {
  const fs::path evaluations = submission.folder / "evaluations";
  const int number = submission.evaluations.empty() ? 1 : submission.evaluations.back() + 1;
  try {
    const Evaluation stored = without_code(evaluation, submission.identity);
    write_file_atomically(folder() / "log.txt", stored.log);
    write_file_atomically(folder() / "result.json", result_to_json(stored));
    if (secret) write_replay_secret(folder(), *secret);
    if (evaluation.bundle_sha256 && fs::exists(folder() / "bundle.kjb")) {
      const fs::path results = submission.folder.parent_path().parent_path();
      share_file(results, folder() / "bundle.kjb", *evaluation.bundle_sha256);
    }
    fs::create_directories(evaluations);
    sync_directory(submission.folder);
    // That the number is taken means the same as that work/ is gone: somebody else's verdict.
    if (rename_new(folder(), evaluations / std::to_string(number)) != Renamed::done) {
      return std::nullopt;
    }
  } catch (const std::exception&) {
    if (held()) throw;
    return std::nullopt;
  }
  remove_running(path_);
  note_stored(number);
  submission.evaluations.push_back(number);
  return number;
}

}  // namespace kjudge
