// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "error.h"
#include "json_fields.h"

namespace kjudge {

// Who hands in to a results directory, and whose the runs are. Both are files, written as all of
// the store is, and any number of processes may ask and write.
//   tokens/HASH.json   of a person; HASH is the SHA-256 of the name without upper case
//   runs/HASH.json     of a run, likewise
// A run belongs to a person, not to a token: who lost one gets another and keeps the runs.

struct Token {
  std::string name;     // of whoever has it
  std::string sha256;   // of the token, which is nowhere
  std::string added;    // UTC, RFC 3339
  std::string revoked;  // the same; empty: it is good
};
JsonFormat token_json_format();

// A new token for `name`, with 256 bits: to be shown once. Fault::usage when the name breaks
// name_rule() (file_names.h) or has a token that is good.
std::string issue_token(const std::filesystem::path& results, const std::string& name);
// Fault::usage when the name has none that is good.
void revoke_token(const std::filesystem::path& results, const std::string& name);
// The file of a name, and what is in it. Fault::malformed, Fault::host.
std::filesystem::path token_file(const std::filesystem::path& results, const std::string& name);
Token read_token(const std::filesystem::path& file);
// In the order of their names. What cannot be read is left out, and reported.
std::vector<Token> read_tokens(const std::filesystem::path& results,
                               const std::function<void(const Error&)>& report);

// Answers whose a token is, by files that it reads again when they change: a token that is revoked
// is good for no request that begins afterwards. Any thread may ask.
class TokenOwners {
 public:
  TokenOwners(const std::filesystem::path& results, std::function<void(const Error&)> report);
  // The name; nullopt for what is no token, or a revoked one. Takes the same time for any.
  // Fault::host where a token that cannot be read now may be this one.
  std::optional<std::string> find(std::string_view token);

 private:
  const std::filesystem::path results_;
  const std::function<void(const Error&)> report_;
  std::mutex mutex_;
  std::int64_t changed_ns_ = -1;  // of the folder when it was read; -1: to be read again
  std::vector<Token> good_;
  bool all_read_ = true;
};

struct Run {
  std::string name;   // as whoever was first wrote it
  std::string owner;  // name of the token that handed in first; empty: the organizer's
  std::string since;  // UTC, RFC 3339
};
JsonFormat run_json_format();

// The name that the run has, or would have once claimed. The organizer (empty) may hand in for any
// run. Fault::usage when the name breaks name_rule() or the run is another's.
std::string run_name(const std::filesystem::path& results, const std::string& name,
                     const std::string& owner);
// The same, and from now on it is `owner`'s. Durable.
std::string claim_run(const std::filesystem::path& results, const std::string& name,
                      const std::string& owner);
// nullopt: nobody's yet. Fault::malformed, Fault::host.
std::optional<Run> find_run(const std::filesystem::path& results, const std::string& name);
// The file of a run, and what is in it. Fault::malformed, Fault::host.
std::filesystem::path run_file(const std::filesystem::path& results, const std::string& name);
Run read_run(const std::filesystem::path& file);
// Writes it durably, where there is none; whether it did. Fault::host.
bool write_run(const std::filesystem::path& results, const Run& run);

}  // namespace kjudge
