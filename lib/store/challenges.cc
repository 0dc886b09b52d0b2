// SPDX-License-Identifier: Apache-2.0
#include "store/challenges.h"

#include <cerrno>
#include <cstdio>
#include <map>
#include <utility>

#include "error.h"
#include "file.h"
#include "store/numbered_folders.h"
#include "unfinished.h"

namespace kjudge {
namespace fs = std::filesystem;

fs::path kept_challenge_folder(const ResultsDirectory& results, const std::string& challenge,
                               int version) {
  return results.path() / "challenges" / challenge / std::to_string(version);
}

namespace {

bool is_kept(const Challenge& challenge, const fs::path& folder) {
  try {
    return read_challenge(folder).sha256 == challenge.sha256;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void keep_challenge(const ResultsDirectory& results, const Challenge& challenge) {
  const fs::path kept = kept_challenge_folder(results, challenge.name, challenge.version);
  const fs::path versions = kept.parent_path();
  if (is_kept(challenge, kept)) return;
  fs::create_directories(versions);
  sync_directory(versions.parent_path());
  sync_directory(results.path());
  sweep_unfinished(versions);
  const UnfinishedFolder folder(versions);
  copy_challenge(challenge, folder.path() / "challenge");
  // Nothing refers to the one before; who is killed here leaves none, and the next judge keeps one.
  if (::rename(kept.c_str(), (folder.path() / "before").c_str()) != 0 && errno != ENOENT) {
    throw_errno(kept.string());
  }
  rename_new(folder.path() / "challenge", kept);  // that of another judge is as good
}

std::vector<Challenge> kept_challenges(const ResultsDirectory& results) {
  std::vector<Challenge> found;
  std::error_code error;
  for (fs::directory_iterator at(results.path() / "challenges", error), end; !error && at != end;
       at.increment(error)) {
    for (const int version : numbered(at->path())) {
      try {
        found.push_back(read_challenge(at->path() / std::to_string(version)));
      } catch (const Error&) {  // fsck tells what is wrong with it
      }
    }
  }
  return found;
}

std::vector<Challenge> newest_kept_challenges(const ResultsDirectory& results) {
  std::map<std::string, Challenge> newest;
  for (Challenge& one : kept_challenges(results)) {
    const auto known = newest.find(one.name);
    if (known != newest.end() && known->second.version > one.version) continue;
    newest.insert_or_assign(one.name, std::move(one));
  }
  std::vector<Challenge> found;
  for (auto& [name, challenge] : newest) found.push_back(std::move(challenge));
  return found;
}

std::optional<Challenge> kept_challenge(const ResultsDirectory& results, const std::string& name,
                                        int version) {
  const fs::path kept = kept_challenge_folder(results, name, version);
  if (fs::path(name).filename() != name) return std::nullopt;
  try {
    if (!fs::exists(kept)) return std::nullopt;
    return read_challenge(kept);
  } catch (const Error&) {  // fsck tells what is wrong with it
    return std::nullopt;
  }
}

std::optional<Challenge> kept_challenge(const ResultsDirectory& results, const Terms& terms) {
  const auto kept = kept_challenge(results, terms.challenge, terms.challenge_version);
  if (!kept || kept->sha256 != terms.challenge_sha256) return std::nullopt;
  try {
    return for_arch(*kept, terms.arch);
  } catch (const Error&) {  // none of its shapes is for that
    return std::nullopt;
  }
}

const Challenge* KeptChallenges::of(const Terms& terms) {
  const auto [at, is_new] = known_.try_emplace({terms.challenge, terms.challenge_version});
  auto& kept = at->second;
  if (is_new) kept = kept_challenge(results_, terms.challenge, terms.challenge_version);
  return kept && kept->sha256 == terms.challenge_sha256 ? &*kept : nullptr;
}

}  // namespace kjudge
