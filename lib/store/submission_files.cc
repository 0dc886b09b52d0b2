// SPDX-License-Identifier: Apache-2.0
#include "store/submission_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "error.h"
#include "file.h"
#include "sha256.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 1000;
constexpr std::size_t kMaxNameBytes = 200;  // room for the suffix of an atomic write

struct FolderEntry {
  fs::path source;
  std::string name;  // relative to the root, with '/'
  bool executable = false;
};

// True for UTF-8 without control characters: such a name is safe in JSON, pages and terminals.
bool printable_name(std::string_view name) {
  for (std::size_t i = 0; i < name.size();) {
    const auto lead = static_cast<unsigned char>(name[i]);
    const std::size_t length = lead < 0x80       ? 1
                               : lead >> 5 == 6  ? 2
                               : lead >> 4 == 14 ? 3
                               : lead >> 3 == 30 ? 4
                                                 : 0;
    if (length == 0 || i + length > name.size()) return false;
    if (length == 1 && (lead < 0x20 || lead == 0x7f)) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if (static_cast<unsigned char>(name[i + k]) >> 6 != 2) return false;
    }
    if (length == 2 && lead == 0xc2 && static_cast<unsigned char>(name[i + 1]) < 0xa0) return false;
    i += length;
  }
  return true;
}

[[noreturn]] void refuse(const std::string& name, std::string_view why) {
  throw Error(Fault::submission, cat(printable_name(name) ? name : "a file", ": ", why));
}

void list_folder(const fs::path& folder, const std::string& prefix,
                 std::vector<FolderEntry>& entries) {
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    if (name.front() == '.' || name == "__pycache__") continue;
    const std::string path = prefix + name;
    if (name.size() > kMaxNameBytes)
      refuse("a file", cat("its name is longer than ", kMaxNameBytes, " bytes"));
    if (!printable_name(path))
      refuse(path, "its name is not UTF-8 or holds control characters; rename it");
    struct stat status {};
    if (::lstat(item.path().c_str(), &status) != 0) throw_errno(item.path().string());
    if (S_ISDIR(status.st_mode)) {
      if (std::count(path.begin(), path.end(), '/') > 16) refuse(path, "more than 16 folders deep");
      list_folder(item.path(), path + "/", entries);
    } else if (S_ISREG(status.st_mode)) {
      entries.push_back({item.path(), path, (status.st_mode & 0111) != 0});
      if (entries.size() > kMaxFiles) refuse(path, cat("more than ", kMaxFiles, " files"));
    } else {
      refuse(
          path,
          "only regular files and folders may be handed in; replace the link or device by a file");
    }
  }
}

std::vector<FolderEntry> list_submission(const fs::path& from) {
  std::error_code error;
  const auto status = fs::status(from, error);
  if (!fs::exists(status)) {
    throw Error(Fault::usage, cat(from.string(),
                                  ": no such submission; expected a Python or CUDA C++ file, or "
                                  "a folder with submission.py or submission.cu at its root"));
  }
  if (fs::is_regular_file(status)) {
    return {{from, from.extension() == ".cu" ? "submission.cu" : "submission.py", false}};
  }
  if (!fs::is_directory(status)) refuse(from.string(), "neither a file nor a folder");
  std::vector<FolderEntry> entries;
  list_folder(from, "", entries);
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  if (entry_file(from).empty()) {
    throw Error(Fault::submission,
                cat(from.filename().string(),
                    ": no submission.py or submission.cu at the root of the folder"));
  }
  return entries;
}

}  // namespace

std::string entry_file(const fs::path& folder) {
  for (const char* name : {"submission.py", "submission.cu"}) {
    std::error_code error;
    if (fs::is_regular_file(fs::symlink_status(folder / name, error))) return name;
  }
  return "";
}

SubmissionFiles copy_submission(const fs::path& from, const fs::path& to,
                                std::uint64_t limit_bytes) {
  const auto entries = list_submission(from);
  fs::create_directory(to);
  SubmissionFiles files;
  std::string digests;
  for (const FolderEntry& entry : entries) {
    std::string bytes;
    try {
      bytes = read_file(entry.source, limit_bytes - files.bytes);
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed) throw;
      refuse(entry.name,
             cat("with it the submission is larger than ", limit_bytes,
                 " bytes; hand in less, and have prepare compute what can be computed"));
    }
    files.bytes += bytes.size();
    ++files.count;
    // Length first: no two lists of files give the same text.
    digests += cat(entry.name.size(), ":", entry.name, entry.executable ? "x" : "-",
                   sha256_hex(bytes), "\n");
    const fs::path target = to / entry.name;
    fs::create_directories(target.parent_path());
    write_file_atomically(target, bytes, IfExists::fail);
    if (entry.executable && ::chmod(target.c_str(), 0755) != 0) throw_errno(target.string());
  }
  files.sha256 = sha256_hex(digests);
  return files;
}

}  // namespace kjudge
