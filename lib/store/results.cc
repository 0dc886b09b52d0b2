// SPDX-License-Identifier: Apache-2.0
#include "store/results.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "error.h"
#include "score/result_json.h"
#include "store/random.h"
#include "store/submission_files.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// "42" is 42; nullopt for "042", "-1", "4x", ".new-3".
std::optional<int> whole_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return std::to_string(number) == text ? std::optional(number) : std::nullopt;
}

std::vector<int> numbered(const fs::path& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error)) {
    if (const auto number = whole_number(item.path().filename().string()))
      numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool rename_new(const fs::path& from, const fs::path& to) {
  if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) ==
      0) {
    sync_directory(to.parent_path());
    return true;
  }
  if (errno != EEXIST) throw_errno(to.string());
  return false;
}

// Renames the finished folder to the first free number from `number` on.
int publish(const fs::path& folder, int number) {
  sync_directory(folder);
  while (!rename_new(folder, folder.parent_path() / std::to_string(number))) ++number;
  return number;
}

void sync_files(const fs::path& folder) {
  for (const auto& item : fs::directory_iterator(folder)) {
    const Fd fd(::open(item.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid() || ::fsync(fd.get()) != 0) throw_errno(item.path().string());
  }
}

// Unfinished folders of a process that was killed.
void sweep(const fs::path& folder) {
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error)) {
    if (item.path().filename().string().starts_with(".new-")) fs::remove_all(item.path(), error);
  }
}

const FieldTable<SubmissionIdentity>& identity_table() {
  using I = SubmissionIdentity;
  static const FieldTable<I> table({
      format_field<I>("kjudge-submission/1"),
      required("id", &I::id, line_kind(1, 64), "UUID of the submission"),
      required("run", &I::run, line_kind(1, 200), "name a contestant groups submissions under"),
      required("name", &I::name, line_kind(1, 300), "file or folder as it was handed in"),
      required("sha256", &I::sha256, matching_kind("64 hexadecimal digits", "[0-9a-f]{64}"),
               "of every path and its bytes"),
      required("received", &I::received, line_kind(1, 40), "UTC, RFC 3339"),
  });
  return table;
}

// 64 bits, which JSON's integers here do not have.
Kind<std::uint64_t> hex_kind() {
  const auto digits = matching_kind("16 hexadecimal digits", "[0-9a-f]{16}");
  return {digits.expected,
          [=](const JsonCursor& at) { return std::stoull(digits.read(at), nullptr, 16); },
          [=](const std::uint64_t& value) {
            std::array<char, 17> text{};
            std::snprintf(text.data(), text.size(), "%016llx",
                          static_cast<unsigned long long>(value));
            return digits.write(text.data());
          },
          digits.schema};
}

const FieldTable<ReplaySecret>& secret_table() {
  using S = ReplaySecret;
  static const FieldTable<S> table({
      format_field<S>("kjudge-secret/1"),
      required("evaluation", &S::evaluation, line_kind(1, 64), "UUID of the evaluation"),
      required("secret", &S::secret, matching_kind("64 hexadecimal digits", "[0-9a-f]{64}"),
               "that the hidden inputs were drawn with"),
      required("order_seed", &S::order_seed, hex_kind(),
               "that the order of arms and regimes was drawn with"),
  });
  return table;
}

// Only the organizer may read it.
void write_secret(const fs::path& path, const ReplaySecret& secret) {
  write_file_atomically(path, print_json(Json{secret_table().write(secret)}));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

std::string identity_to_json(const SubmissionIdentity& identity) {
  return print_json(Json{identity_table().write(identity)});
}

SubmissionIdentity read_identity(const fs::path& path, int number) {
  const Json json = parse_json(read_file(path, 1u << 20), path.string(), Fault::malformed);
  const std::string file = path.string();
  SubmissionIdentity identity = identity_table().read(JsonCursor(json, file, Fault::malformed));
  identity.number = number;
  return identity;
}

StoredSubmission read_submission(const fs::path& folder, int number) {
  return {read_identity(folder / "submission.json", number), folder,
          numbered(folder / "evaluations")};
}

}  // namespace

JsonFormat submission_json_format() { return json_format(identity_table()); }
JsonFormat secret_json_format() { return json_format(secret_table()); }

ReplaySecret draw_replay_secret() { return {random_uuid(), random_hex(32), random_u64() | 1}; }

ReplaySecret read_replay_secret(const fs::path& evaluation) {
  const std::string path = (evaluation / "secret.json").string();
  if (!fs::exists(path)) {
    throw Error(Fault::usage, cat(path,
                                  ": no such file; the hidden inputs of an evaluation that "
                                  "kept no secret cannot be made again"));
  }
  const Json json = parse_json(read_file(path, 1u << 20), path, Fault::malformed);
  return secret_table().read(JsonCursor(json, path, Fault::malformed));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

NewEvaluation::NewEvaluation(const StoredSubmission& submission)
    : folder_(submission.folder / "evaluations" / cat(".new-", random_hex(8))) {
  fs::create_directories(folder_);
}

NewEvaluation::~NewEvaluation() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

int NewEvaluation::commit(StoredSubmission& submission, const Evaluation& evaluation,
                          const ReplaySecret& secret) {
  write_file_atomically(folder_ / "log.txt", evaluation.log);
  write_file_atomically(folder_ / "result.json", result_to_json(evaluation));
  write_secret(folder_ / "secret.json", secret);
  sync_files(folder_);
  const int next = submission.evaluations.empty() ? 1 : submission.evaluations.back() + 1;
  const int number = publish(folder_, next);
  folder_.clear();
  submission.evaluations.push_back(number);
  return number;
}

ResultsDirectory::ResultsDirectory(const fs::path& path) : path_(path) {
  if (!fs::is_directory(path / "submissions")) {
    throw Error(Fault::usage, cat(path.string(),
                                  ": no results directory of kjudge (it would hold a "
                                  "folder submissions)"));
  }
}

std::optional<ResultsDirectory> ResultsDirectory::lock(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path / "submissions", error);
  if (error) throw Error(Fault::host, cat(path.string(), ": ", error.message()));
  ResultsDirectory results;
  results.path_ = path;
  const fs::path lock_path = path / ".lock";
  results.lock_.reset(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!results.lock_.valid()) throw_errno(lock_path.string());
  if (::flock(results.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    throw_errno(lock_path.string());
  }
  sweep(path / "submissions");
  for (int number : numbered(path / "submissions")) {
    sweep(path / "submissions" / std::to_string(number) / "evaluations");
  }
  return results;
}

std::vector<StoredSubmission> ResultsDirectory::submissions(const Report& report) const {
  std::vector<StoredSubmission> found;
  for (int number : numbered(path_ / "submissions")) {
    try {
      found.push_back(read_submission(path_ / "submissions" / std::to_string(number), number));
    } catch (const Error& error) {
      report(error.what());
    }
  }
  return found;
}

StoredSubmission ResultsDirectory::submission(int number) const {
  const fs::path folder = path_ / "submissions" / std::to_string(number);
  if (!fs::is_directory(folder)) {
    throw Error(Fault::usage, cat(path_.string(), ": there is no submission ", number));
  }
  return read_submission(folder, number);
}

int ResultsDirectory::add(const fs::path& from, const std::string& run, std::uint64_t limit_bytes,
                          const std::vector<StoredSubmission>& present) {
  KJ_CHECK(lock_.valid());
  const fs::path folder = path_ / "submissions" / cat(".new-", random_hex(8));
  struct Remove {
    const fs::path& folder;
    ~Remove() {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
  } remove{folder};
  fs::create_directory(folder);

  SubmissionIdentity identity;
  identity.sha256 = copy_submission(from, folder / "files", limit_bytes).sha256;
  const auto same =
      std::find_if(present.begin(), present.end(), [&](const StoredSubmission& other) {
        return other.identity.run == run && other.identity.sha256 == identity.sha256;
      });
  if (same != present.end()) return same->identity.number;

  identity.id = random_uuid();
  identity.run = run;
  identity.name = from.filename().string();
  identity.received = utc_now();
  write_file_atomically(folder / "submission.json", identity_to_json(identity));
  const auto numbers = numbered(path_ / "submissions");
  return publish(folder, numbers.empty() ? 1 : numbers.back() + 1);
}

std::optional<Evaluation> latest_evaluation(const StoredSubmission& submission) {
  if (submission.evaluations.empty()) return std::nullopt;
  const fs::path path = submission.folder / "evaluations" /
                        std::to_string(submission.evaluations.back()) / "result.json";
  return result_from_json(read_file(path), path);
}

}  // namespace kjudge
