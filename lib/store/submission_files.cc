// SPDX-License-Identifier: Apache-2.0
#include "store/submission_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "archive.h"
#include "error.h"
#include "file.h"
#include "file_names.h"
#include "sha256.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

struct FolderEntry {
  fs::path source;
  std::string name;  // relative to the root, with '/'
  bool executable = false;
};

[[noreturn]] void refuse(const std::string& name, std::string_view why) {
  throw Error(Fault::submission, cat(printable_name(name) ? name : "a file", ": ", why));
}

void list_folder(const fs::path& folder, const std::string& prefix, NameRules& rules,
                 std::vector<FolderEntry>& entries) {
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    if (left_out(name)) continue;
    const std::string path = prefix + name;
    struct stat status {};
    if (::lstat(item.path().c_str(), &status) != 0) throw_errno(item.path().string());
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
      refuse(
          path,
          "only regular files and folders may be handed in; replace the link or device by a file");
    }
    const bool inner = S_ISDIR(status.st_mode);
    if (!inner && (status.st_mode & (S_ISUID | S_ISGID)) != 0) refuse(path, kSetId);
    const std::string rule =
        rules.add(path, inner ? NameRules::Kind::folder : NameRules::Kind::file);
    if (!rule.empty()) refuse(path, rule);
    if (inner) {
      list_folder(item.path(), path + "/", rules, entries);
    } else {
      entries.push_back({item.path(), path, (status.st_mode & 0111) != 0});
    }
  }
}

std::string why_no_entry_file(const fs::path& folder, const std::vector<FolderEntry>& entries) {
  for (const char* name : {"submission.py", "submission.cu"}) {
    if (fs::is_directory(folder / name)) {
      return cat(name, " is a folder; a file of that name is what is called");
    }
  }
  constexpr std::string_view kNone = "no submission.py or submission.cu at the root of the folder";
  for (const FolderEntry& entry : entries) {
    const std::string file = entry.source.filename();
    if (file == "submission.py" || file == "submission.cu") {
      return cat(kNone, "; hand in the folder of ", entry.name);
    }
  }
  return cat(kNone, "; name the file so that has prepare and kernel_fn");
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
    if (from.extension() != ".py" && from.extension() != ".cu") {
      throw Error(Fault::usage,
                  cat(from.string(),
                      ": no submission; expected a .py or .cu file, a folder, or an archive: .tar, "
                      ".tar.gz, .tgz, .tar.zst or .zip"));
    }
    return {{from, from.extension() == ".cu" ? "submission.cu" : "submission.py", false}};
  }
  if (!fs::is_directory(status)) {
    refuse(from.string(), "neither a file nor a folder; hand in one of them");
  }
  std::vector<FolderEntry> entries;
  NameRules rules;
  list_folder(from, "", rules, entries);
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  if (entry_file(from).empty()) refuse(from.filename().string(), why_no_entry_file(from, entries));
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

namespace {

// What is handed in, or the one folder in it: archives are mostly made of a folder, not in it.
fs::path root_of(const fs::path& unpacked) {
  fs::path only;
  for (const auto& item : fs::directory_iterator(unpacked)) {
    if (left_out(item.path().filename().native())) continue;
    if (!only.empty() || !item.is_directory()) return unpacked;
    only = item.path();
  }
  return only.empty() ? unpacked : only;
}

// Passes each file to `take`. Fault::submission when they are more than `limit_bytes`.
SubmissionFiles read_files(const fs::path& from, std::uint64_t limit_bytes,
                           const std::function<void(const FolderEntry&, std::string_view)>& take) {
  SubmissionFiles files;
  std::string digests;
  for (const FolderEntry& entry : list_submission(from)) {
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
    take(entry, bytes);
  }
  files.sha256 = sha256_hex(digests);
  return files;
}

SubmissionFiles copy_files(const fs::path& from, const fs::path& to, std::uint64_t limit_bytes) {
  fs::create_directory(to);
  return read_files(from, limit_bytes, [&](const FolderEntry& entry, std::string_view bytes) {
    const fs::path target = to / entry.name;
    fs::create_directories(target.parent_path());
    write_new_file(target, bytes);
    if (entry.executable && ::chmod(target.c_str(), 0755) != 0) throw_errno(target.string());
  });
}

}  // namespace

SubmissionFiles read_submission_files(const fs::path& folder) {
  return read_files(folder, std::numeric_limits<std::uint64_t>::max(),
                    [](const FolderEntry&, std::string_view) {});
}

SubmissionFiles copy_submission(const fs::path& from, const fs::path& to,
                                std::uint64_t limit_bytes) {
  if (!is_archive(from) || !fs::is_regular_file(from)) return copy_files(from, to, limit_bytes);
  const TempDir work("kjudge-unpack");
  ArchiveLimits limits;
  limits.bytes = limit_bytes;
  const fs::path files = work.path() / from.filename();  // messages name it
  unpack_archive(from, files, limits, Fault::submission);
  return copy_files(root_of(files), to, limit_bytes);
}

}  // namespace kjudge
