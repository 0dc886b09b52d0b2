// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "error.h"
#include "file.h"
#include "judge/pipeline.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

bool is_challenge(const fs::path& folder) { return fs::is_regular_file(folder / "challenge.json"); }

std::vector<std::string> package_names(const fs::path& packages) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(packages, error)) {
    if (is_challenge(item.path())) names.push_back(item.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

fs::path cache_path() {
  const char* given = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path root;
  if (given != nullptr && *given == '/') {
    root = given;
  } else if (home != nullptr && *home == '/') {
    root = fs::path(home) / ".cache";
  } else {
    throw Error(Fault::usage,
                "neither XDG_CACHE_HOME nor HOME is an absolute path; recordings of baselines are "
                "kept below it: set XDG_CACHE_HOME to a folder that can be written");
  }
  return root / "kjudge";
}

fs::path cache_directory() {
  const fs::path folder = cache_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(Fault::host,
                cat(folder.string(), ": ", error.message(),
                    "; recordings of baselines are kept there: set XDG_CACHE_HOME to a "
                    "folder that can be written"));
  }
  fs::permissions(folder, fs::perms::owner_all, error);  // what is in it is replayed as trusted
  if (error) throw Error(Fault::host, cat(folder.string(), ": ", error.message()));
  return folder;
}

fs::path find_challenge(const std::string& name, const fs::path& submission) {
  const fs::path packages = library_directory() / "packages";
  if (!name.empty()) {
    if (is_challenge(name)) return name;
    if (is_challenge(packages / name)) return packages / name;
    throw Error(Fault::usage, cat(name,
                                  ": neither a folder with challenge.json nor a "
                                  "package; packages here: ",
                                  joined(package_names(packages))));
  }
  if (!submission.empty()) {
    // A folder that is handed in may hold a challenge.json of its contestant's: only beside and
    // above.
    for (fs::path folder = fs::absolute(submission).lexically_normal().parent_path();;
         folder = folder.parent_path()) {
      if (is_challenge(folder)) return folder;
      if (folder == folder.parent_path()) break;
    }
  }
  const auto names = package_names(packages);
  if (names.size() == 1) return packages / names.front();
  throw Error(Fault::usage, cat("which challenge? There is no challenge.json beside or above the "
                                "submission; say --challenge NAME. Packages here: ",
                                joined(names)));
}

}  // namespace kjudge
