// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace kjudge {

// Folders whose names are whole numbers, each of which appears whole and for good: filled under a
// name that begins with a dot, synced, then renamed. All of it holds for several machines on a
// shared file system too.

inline constexpr int kMostNumber = 1 << 30;

// The numbers of the folders in `folder`, ascending; "042", ".new-3" and what is more than
// kMostNumber are none. Empty where there
// is no such folder; Fault::host where it cannot be read.
std::vector<int> numbered(const std::filesystem::path& folder);

// Renames a folder, which is not empty, with all that was written in it and its files synced.
enum class Renamed {
  done,
  exists,  // `to` is there already
  gone     // `from` is not there, nor is it `to`
};
// Fault::host for any other failure.
Renamed rename_new(const std::filesystem::path& from, const std::filesystem::path& to);

// An unfinished folder (unfinished.h) in `parent`, removed when this goes unless it was renamed.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(const std::filesystem::path& parent);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kjudge
