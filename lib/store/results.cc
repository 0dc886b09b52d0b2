// SPDX-License-Identifier: Apache-2.0
#include "store/results.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <thread>
#include <tuple>

#include "error.h"
#include "file.h"
#include "file_names.h"
#include "score/result_json.h"
#include "store/blobs.h"
#include "store/identity.h"
#include "store/numbered_folders.h"
#include "store/random.h"
#include "store/submission_files.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunBytes = 200, kNameBytes = 300;

struct StoreVersion {};

const FieldTable<StoreVersion>& store_table() {
  static const FieldTable<StoreVersion> table({format_field<StoreVersion>("kjudge-store/2")});
  return table;
}

// A directory without it is of version 1, of which all is as it was.
void check_version(const fs::path& path) {
  const fs::path file = path / "store.json";
  if (!fs::exists(file)) return;
  const std::string name = file.string();
  const Json json = parse_json(read_file(file, 1u << 20), name, Fault::malformed);
  store_table().read(JsonCursor(json, name, Fault::malformed));
}

// 64 bits, which JSON's integers here do not have.
Kind<std::uint64_t> hex_kind() {
  const auto digits = hexadecimal_kind(16);
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
      required("secret", &S::secret, hexadecimal_kind(64),
               "that the hidden inputs were drawn with"),
      required("order_seed", &S::order_seed, hex_kind(),
               "that the order of arms and regimes was drawn with"),
  });
  return table;
}

std::string identity_to_json(const SubmissionIdentity& identity) {
  return print_json(Json{submission_table().write(identity)});
}

SubmissionIdentity read_identity(const fs::path& path, int number) {
  const Json json = parse_json(read_file(path, 1u << 20), path.string(), Fault::malformed);
  const std::string file = path.string();
  SubmissionIdentity identity = submission_table().read(JsonCursor(json, file, Fault::malformed));
  identity.number = number;
  return identity;
}

// What could not be read back under the same name.
void check_names(const std::string& run, const std::string& name) {
  for (const auto& [what, text, limit] :
       {std::tuple("run", &run, kRunBytes), std::tuple("file", &name, kNameBytes)}) {
    if (text->empty() || text->size() > limit) {
      throw Error(Fault::submission, cat("the name of its ", what, " has ", text->size(),
                                         " bytes; 1 to ", limit, " are allowed"));
    }
    if (!printable_name(*text)) {
      throw Error(Fault::submission, cat("the name of its ", what,
                                         " is not UTF-8 or holds control characters; rename it"));
    }
  }
  if (const std::string rule = visible_rule(run); !rule.empty()) {
    throw Error(Fault::submission, cat("the name of its run ", rule, "; rename it"));
  }
}

// The next one that is taken; nullopt: none.
std::optional<int> next_number(const fs::path& folder, int after) {
  const auto numbers = numbered(folder);
  const auto next = std::upper_bound(numbers.begin(), numbers.end(), after);
  return next == numbers.end() ? std::nullopt : std::optional(*next);
}

StoredSubmission read_submission(const fs::path& folder, int number) {
  return {read_identity(folder / "submission.json", number), folder,
          numbered(folder / "evaluations")};
}

}  // namespace

const FieldTable<SubmissionIdentity>& submission_table() {
  using I = SubmissionIdentity;
  static const FieldTable<I> table({
      format_field<I>("kjudge-submission/1"),
      required("id", &I::id, line_kind(1, 64), "UUID of the submission"),
      optional("challenge", &I::challenge, line_kind(0, 100),
               "name of the challenge; absent in version 1 of the layout, which held only one"),
      optional(
          "variant", &I::variant, request_kind(),
          "the part of the challenge that is asked for, CHALLENGE:dtype:gpu:shape; absent: all "
          "of it"),
      required("run", &I::run, line_kind(1, kRunBytes),
               "name a contestant groups submissions under"),
      required("name", &I::name, line_kind(1, kNameBytes), "file or folder as it was handed in"),
      required("sha256", &I::sha256, hexadecimal_kind(64), "of every path and its bytes"),
      required("received", &I::received, line_kind(1, 40), "UTC, RFC 3339"),
      optional("owner", &I::owner, line_kind(0, 200),
               "name of the token that it was handed in with; absent where the organizer did"),
      optional("contact", &I::contact, line_kind(0, 200),
               "how to reach the author; absent where none was given"),
      optional("keep", &I::keep, boolean_kind(),
               "false: the files are removed once judged, no log is stored, and it is not ranked"),
      optional("publish", &I::publish, boolean_kind(),
               "false: its code is shown to nobody, whatever the challenge says"),
  });
  return table;
}

JsonFormat secret_json_format() { return json_format(secret_table()); }

JsonFormat store_json_format() { return json_format(store_table()); }

void write_replay_secret(const fs::path& evaluation, const ReplaySecret& secret) {
  const fs::path path = evaluation / "secret.json";
  write_file_atomically(path, print_json(Json{secret_table().write(secret)}));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

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

std::string utc_now_and_over() {
  const std::string now = utc_now();
  while (utc_now() == now) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return now;
}

ResultsDirectory::ResultsDirectory(const fs::path& path) : path_(path) {
  if (!fs::is_directory(path / "submissions")) {
    throw Error(Fault::usage, cat(path.string(),
                                  ": no results directory of kjudge (it would hold a "
                                  "folder submissions)"));
  }
  check_version(path);
}

ResultsDirectory ResultsDirectory::make(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path / "submissions", error);
  if (error) throw Error(Fault::host, cat(path.string(), ": ", error.message()));
  if (!fs::exists(path / "store.json")) {
    write_file_atomically(path / "store.json", print_json(Json{store_table().write({})}),
                          IfExists::fail);
  }
  ResultsDirectory results(path);
  for (const char* folder : {"", "runs", "submissions", "tokens"}) sweep_unfinished(path / folder);
  for (int number : numbered(path / "submissions")) {
    sweep_unfinished(path / "submissions" / std::to_string(number) / "claims");
  }
  return results;
}

std::vector<StoredSubmission> ResultsDirectory::submissions(const Report& report) const {
  std::vector<StoredSubmission> found;
  for (int number : numbered(path_ / "submissions")) {
    try {
      found.push_back(read_submission(path_ / "submissions" / std::to_string(number), number));
    } catch (const Error& error) {
      report(error);
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

int ResultsDirectory::add(const HandIn& hand_in, const std::vector<SubmissionIdentity>& present) {
  check_names(hand_in.run, hand_in.from.filename().string());
  const fs::path submissions = path_ / "submissions";
  const UnfinishedFolder folder(submissions);
  SubmissionIdentity identity;
  identity.sha256 =
      copy_submission(hand_in.from, folder.path() / "files", hand_in.limit_bytes).sha256;
  const auto is_same = [&](const SubmissionIdentity& other) {
    if (!hand_in.id.empty() && other.id != hand_in.id) return false;
    const bool same = other.run == identity.run && other.challenge == hand_in.challenge &&
                      other.variant == hand_in.variant && other.sha256 == identity.sha256 &&
                      other.keep == hand_in.keep && other.publish == hand_in.publish;
    if (!same && !hand_in.id.empty()) {
      throw Error(Fault::usage, cat("id: submission ", other.number,
                                    " has it, with other files or for something else; draw "
                                    "another"));
    }
    return same;
  };
  identity.run = run_name(path_, hand_in.run, hand_in.owner);
  // Whoever put it there may not have come to this yet, or have been killed before.
  const auto already = [&](int number) {
    sync_directory(submissions);
    return number;
  };
  for (const SubmissionIdentity& other : present) {
    if (is_same(other)) return already(other.number);
  }
  identity.id = hand_in.id.empty() ? random_uuid() : hand_in.id;
  identity.challenge = hand_in.challenge;
  identity.variant = hand_in.variant;
  identity.owner = hand_in.owner;
  identity.contact = hand_in.contact;
  identity.keep = hand_in.keep;
  identity.publish = hand_in.publish;
  identity.name = hand_in.from.filename().string();
  identity.received = utc_now();
  const fs::path identity_file = folder.path() / "submission.json";
  write_new_file(identity_file, identity_to_json(identity));
  share_files(path_, folder.path() / "files");
  // Last of what may fail: what is refused, or finds the disk full, takes no name.
  const std::string run = claim_run(path_, hand_in.run, hand_in.owner);
  if (run != identity.run) {  // somebody wrote it otherwise in the meantime
    identity.run = run;
    fs::remove(identity_file);
    write_new_file(identity_file, identity_to_json(identity));
  }
  // Only past what was looked at is there a free number, so two that add the same see each other.
  int number = present.empty() ? 1 : present.back().number + 1;
  // One that is free below another was a lost submission's.
  int given = hand_in.after;
  if (const auto there = present.empty() ? numbered(submissions) : std::vector<int>();
      !there.empty()) {
    given = std::max(given, there.back());
  }
  for (;; ++number) {
    const fs::path taken = submissions / std::to_string(number);
    if (!fs::exists(taken)) {
      if (number <= given) {
        // A folder that somebody put there may have any number, far from all others.
        number = next_number(submissions, number).value_or(given + 1) - 1;
        continue;
      }
      if (number > kMostNumber) {
        throw Error(Fault::host, cat(submissions.string(), ": no number is left after ", number - 1,
                                     "; move the folder of that name elsewhere if kjudge did not "
                                     "make it, and remove scores.index"));
      }
      const Renamed renamed = rename_new(folder.path(), taken);
      if (renamed == Renamed::done) return number;
      if (renamed == Renamed::gone) {
        throw Error(Fault::host, cat(folder.path().string(), ": was removed while it was written"));
      }
    }
    const auto known = hand_in.id_of ? hand_in.id_of(number) : std::nullopt;
    if (known && *known != hand_in.id) continue;
    std::optional<SubmissionIdentity> there;
    try {
      there = submission(number).identity;
    } catch (const Error&) {
      // Damaged, which submissions() reports: the number is taken all the same.
    }
    if (there ? is_same(*there) : known.has_value()) return already(number);
  }
}

void require_files(const StoredSubmission& submission) {
  const fs::path files = submission.folder / "files";
  const auto require = [&](bool holds, std::string_view what) {
    if (!holds) throw Error(Fault::malformed, cat(files.string(), ": ", what));
  };
  require(fs::is_directory(files), "is missing, and with it what was handed in");
  std::string sha256;
  try {
    sha256 = read_submission_files(files).sha256;
  } catch (const Error& error) {
    if (error.fault() != Fault::submission) throw;
    require(false, error.what());
  }
  require(sha256 == submission.identity.sha256,
          "are not what was handed in: their hash is not that of submission.json");
}

Evaluation without_code(Evaluation evaluation, const SubmissionIdentity& submission) {
  if (!submission.keep) evaluation.log.clear();
  return evaluation;
}

bool has_files_to_remove(const StoredSubmission& submission) {
  return !submission.identity.keep && !submission.evaluations.empty() &&
         fs::exists(submission.folder / "files");
}

void remove_files(const ResultsDirectory& results, const StoredSubmission& submission) {
  for (const int number : numbered(submission.folder / "evaluations")) {
    const fs::path bundle =
        submission.folder / "evaluations" / std::to_string(number) / "bundle.kjb";
    if (fs::exists(bundle)) remove_shared(results.path(), bundle);
  }
  const fs::path files = submission.folder / "files";
  if (!fs::exists(files)) return;
  std::vector<fs::path> all;
  for (const auto& item : fs::recursive_directory_iterator(files)) {
    if (item.is_regular_file() && !item.is_symlink()) all.push_back(item.path());
  }
  for (const fs::path& file : all) remove_shared(results.path(), file);
  fs::remove_all(files);  // last: until then has_files_to_remove() says so
  sync_directory(submission.folder);
}

std::vector<fs::path> profile_files(const fs::path& evaluation) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(evaluation, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (name == "profile.json" || (name.starts_with("profile-") && name.ends_with(".json"))) {
      found.push_back(at->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error(Fault::host, cat(evaluation.string(), ": ", error.message()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Evaluation> latest_evaluation(const StoredSubmission& submission) {
  if (submission.evaluations.empty()) return std::nullopt;
  const fs::path path = submission.folder / "evaluations" /
                        std::to_string(submission.evaluations.back()) / "result.json";
  return result_from_json(read_file(path), path);
}

}  // namespace kjudge
