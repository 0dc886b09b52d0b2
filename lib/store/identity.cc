// SPDX-License-Identifier: Apache-2.0
#include "store/identity.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "error.h"
#include "file.h"
#include "file_names.h"
#include "sha256.h"
#include "store/random.h"
#include "store/results.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytes = 1 << 16;
constexpr std::string_view kTokenPrefix = "kjt_";  // for people and programs that look for secrets

const FieldTable<Token>& token_table() {
  using T = Token;
  static const FieldTable<T> table({
      format_field<T>("kjudge-token/1"),
      required("name", &T::name, line_kind(1, 200), "whose it is"),
      required("sha256", &T::sha256, hexadecimal_kind(64), "of the token"),
      required("added", &T::added, line_kind(1, 40), "UTC, RFC 3339"),
      optional("revoked", &T::revoked, line_kind(0, 40),
               "since when it is good for nothing; absent while it is good"),
  });
  return table;
}

const FieldTable<Run>& run_table() {
  using R = Run;
  static const FieldTable<R> table({
      format_field<R>("kjudge-run/1"),
      required("name", &R::name, line_kind(1, 200), "as whoever was first wrote it"),
      optional("owner", &R::owner, line_kind(0, 200),
               "name of the token that used it first; absent where the organizer did"),
      required("since", &R::since, line_kind(1, 40), "UTC, RFC 3339"),
  });
  return table;
}

template <class T>
T read_as(const FieldTable<T>& table, const fs::path& path) {
  const std::string file = path.string();
  const Json json = parse_json(read_file(path, kFileBytes), file, Fault::malformed);
  return table.read(JsonCursor(json, file, Fault::malformed));
}

void require_name(std::string_view what, const std::string& name) {
  if (const std::string rule = name_rule(name); !rule.empty()) {
    throw Error(Fault::usage, cat(what, " ", rule, "; choose another"));
  }
}

fs::path file_of(const fs::path& folder, const std::string& name) {
  return folder / (sha256_hex(folded_name(name)) + ".json");
}

fs::path make_folder(const fs::path& results, const char* name) {
  const fs::path folder = results / name;
  std::error_code error;
  if (fs::create_directory(folder, error)) sync_directory(results);
  if (error) throw Error(Fault::host, cat(folder.string(), ": ", error.message()));
  return folder;
}

// For as long as it is there, no other process changes tokens.
Fd lock_folder(const fs::path& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX) != 0) throw_errno(folder.string());
  return fd;
}

std::optional<Token> find_token(const fs::path& file) {
  if (!fs::exists(file)) return std::nullopt;
  return read_as(token_table(), file);
}

}  // namespace

JsonFormat token_json_format() { return json_format(token_table()); }
JsonFormat run_json_format() { return json_format(run_table()); }

std::string issue_token(const fs::path& results, const std::string& name) {
  require_name("the name", name);
  const fs::path folder = make_folder(results, "tokens");
  const Fd lock = lock_folder(folder);
  const fs::path file = file_of(folder, name);
  const auto before = find_token(file);
  if (before && before->revoked.empty()) {
    throw Error(Fault::usage, cat(before->name, " has a token; revoke it before adding another"));
  }
  const std::string token = cat(kTokenPrefix, random_hex(32));
  // The runs of a name stay its own, so it stays as it was written first.
  const Token added{before ? before->name : name, sha256_hex(token), utc_now(), ""};
  write_file_atomically(file, print_json(Json{token_table().write(added)}));
  return token;
}

void revoke_token(const fs::path& results, const std::string& name) {
  const fs::path folder = results / "tokens";
  std::optional<Token> token;
  Fd lock;
  if (fs::is_directory(folder)) {
    lock = lock_folder(folder);
    token = find_token(file_of(folder, name));
  }
  if (!token || !token->revoked.empty()) {
    throw Error(Fault::usage, cat(name, " has no token that could be revoked"));
  }
  token->revoked = utc_now();
  write_file_atomically(file_of(folder, name), print_json(Json{token_table().write(*token)}));
}

fs::path token_file(const fs::path& results, const std::string& name) {
  return file_of(results / "tokens", name);
}

Token read_token(const fs::path& file) { return read_as(token_table(), file); }

std::vector<Token> read_tokens(const fs::path& results,
                               const std::function<void(const Error&)>& report) {
  std::vector<Token> tokens;
  std::error_code error;
  for (fs::directory_iterator at(results / "tokens", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    try {
      tokens.push_back(read_as(token_table(), at->path()));
    } catch (const Error& problem) {
      report(problem);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    report(Error(Fault::host, cat((results / "tokens").string(), ": ", error.message())));
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const Token& a, const Token& b) { return a.name < b.name; });
  return tokens;
}

TokenOwners::TokenOwners(const fs::path& results, std::function<void(const Error&)> report)
    : results_(results), report_(std::move(report)) {}

std::optional<std::string> TokenOwners::find(std::string_view token) {
  const std::string sha256 = sha256_hex(token);
  const std::lock_guard lock(mutex_);
  // Every write renames a file into the folder, which changes its time; but not twice within a tick
  // of the kernel's clock, so a young one is not relied on.
  constexpr std::int64_t kYoungNs = 2'000'000'000;
  const fs::path folder = results_ / "tokens";
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_errno(folder.string());
    good_.clear();
    all_read_ = true;
    changed_ns_ = -1;
  } else if (const std::int64_t now_ns =
                 status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
             changed_ns_ != now_ns) {
    all_read_ = true;
    good_ = read_tokens(results_, [&](const Error& error) {
      // Of descriptors or memory there may be more in a moment; what is damaged stays so.
      if (error.fault() == Fault::host) all_read_ = false;
      report_(error);
    });
    std::erase_if(good_, [](const Token& one) { return !one.revoked.empty(); });
    const auto age =
        std::chrono::system_clock::now().time_since_epoch() - std::chrono::nanoseconds(now_ns);
    changed_ns_ = all_read_ && age > std::chrono::nanoseconds(kYoungNs) ? now_ns : -1;
  }
  const Token* found = nullptr;
  for (const Token& one : good_) {
    if (CRYPTO_memcmp(one.sha256.data(), sha256.data(), sha256.size()) == 0) found = &one;
  }
  if (found != nullptr) return found->name;
  if (!all_read_)
    throw Error(Fault::host, cat(folder.string(), ": not all tokens can be read now"));
  return std::nullopt;
}

fs::path run_file(const fs::path& results, const std::string& name) {
  return file_of(results / "runs", name);
}

Run read_run(const fs::path& file) { return read_as(run_table(), file); }

std::optional<Run> find_run(const fs::path& results, const std::string& name) {
  const fs::path file = run_file(results, name);
  return fs::exists(file) ? std::optional(read_run(file)) : std::nullopt;
}

namespace {

void require_own(const Run& run, const std::string& owner) {
  if (owner.empty() || folded_name(run.owner) == folded_name(owner)) return;
  throw Error(Fault::usage,
              cat("the run ", run.name, " belongs to somebody else; choose another name"));
}

}  // namespace

std::string run_name(const fs::path& results, const std::string& name, const std::string& owner) {
  if (const auto run = find_run(results, name)) {
    require_own(*run, owner);
    return run->name;
  }
  // Names that folders and older versions brought are taken as they are by the organizer.
  if (!owner.empty()) require_name("the run's name", name);
  return name;
}

bool write_run(const fs::path& results, const Run& run) {
  make_folder(results, "runs");
  return write_file_atomically(run_file(results, run.name),
                               print_json(Json{run_table().write(run)}), IfExists::fail);
}

std::string claim_run(const fs::path& results, const std::string& name, const std::string& owner) {
  run_name(results, name, owner);  // before anything is written
  if (!fs::exists(run_file(results, name)) && write_run(results, {name, owner, utc_now()})) {
    return name;
  }
  return run_name(results, name, owner);  // somebody may have been first meanwhile
}

}  // namespace kjudge
