// SPDX-License-Identifier: Apache-2.0
#include "judge/intake.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "archive.h"
#include "error.h"
#include "file_names.h"
#include "judge/interrupt.h"
#include "store/submission_files.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  return path.extension() == ".py" || path.extension() == ".cu";
}

std::string run_of(const fs::path& path) {
  if (fs::is_directory(path)) return path.filename();
  return is_archive(path) ? archive_stem(path) : path.stem().string();
}

struct Found {
  std::vector<fs::path> submissions;
  std::vector<RefusedHandIn> refused;
};

// Why an item of the folder is not taken; empty: it is.
std::string why_not(const fs::directory_entry& item) {
  std::error_code error;
  // judge may read what whoever made the link may not
  if (item.is_symlink(error)) return "a link; put the file or folder itself in its place";
  if (!item.is_directory(error) && !item.is_regular_file(error)) return "not a file or folder";
  if (!printable_name(item.path().filename().native())) {
    return "its name is not UTF-8 or holds control characters; rename it";
  }
  return "";
}

// On one line, whatever it holds.
std::string shown(const std::string& name) {
  return printable_name(name) ? name : print_flat_json(Json{name});
}

// Why this user cannot read a file, or one in a folder; empty: all can be read.
std::string why_unreadable(const fs::path& path) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (::access(path.c_str(), folder ? R_OK | X_OK : R_OK) != 0) {
    return cat(shown(path.filename()), " cannot be read: ", std::generic_category().message(errno),
               "; let the user that judges read it");
  }
  if (!folder) return "";
  for (const auto& item : fs::directory_iterator(path, error)) {
    if (item.is_symlink(error)) continue;
    if (std::string why = why_unreadable(item.path()); !why.empty()) return why;
  }
  return "";
}

// As its name says, and of a folder what is in it.
std::string why_no_submission(const fs::directory_entry& item) {
  std::error_code error;
  if (is_source(item.path()) || is_archive(item.path())) return "";
  if (!item.is_directory(error)) {
    return "neither a .py or .cu file nor an archive nor a folder";
  }
  if (!entry_file(item.path()).empty()) return "";
  return "a folder without submission.py or submission.cu at its root";
}

Found waiting_in(const fs::path& from, const ReportLine& line) {
  if (!fs::is_directory(from)) {
    throw Error(Fault::usage, cat(from.string(), ": no folder of submissions"));
  }
  Found found;
  for (const auto& item : fs::directory_iterator(from)) {
    const std::string name = item.path().filename();
    if (name.starts_with('.')) continue;
    std::error_code error;
    if (item.is_directory(error) && !item.is_symlink(error) &&
        ::access(item.path().c_str(), R_OK | X_OK) != 0) {
      found.refused.push_back({name, why_unreadable(item.path())});
    } else if (const std::string other = why_no_submission(item); !other.empty()) {
      line(cat(shown(name), ": left out: ", other));
    } else if (std::string broken = why_not(item); !broken.empty()) {
      found.refused.push_back({name, std::move(broken)});
    } else {
      found.submissions.push_back(item.path());
    }
  }
  std::sort(found.submissions.begin(), found.submissions.end());
  return found;
}

}  // namespace

std::vector<RefusedHandIn> take_in(ResultsDirectory& results, const Challenge& challenge,
                                   const IntakeFrom& from,
                                   const std::vector<SubmissionIdentity>& present,
                                   const ReportLine& line,
                                   const ResultsDirectory::Report& left_out) {
  Found found = waiting_in(from.folder, line);
  for (const fs::path& path : found.submissions) {
    check_interrupt();
    const std::string name = path.filename();
    const auto not_taken = [&](const Error& error) {
      if (error.fault() == Fault::submission) return found.refused.push_back({name, error.what()});
      if (error.fault() != Fault::malformed && error.fault() != Fault::host) throw error;
      if (std::string why = why_unreadable(path); !why.empty()) {
        return found.refused.push_back({name, std::move(why)});
      }
      left_out(Error(error.fault(), cat(shown(name), ": left out: ", error.what())));
    };
    try {
      ResultsDirectory::HandIn hand_in{path, run_of(path), challenge.name,
                                       challenge.limits.submission_bytes};
      hand_in.variant = from.variant;
      hand_in.after = from.after;
      results.add(hand_in, present);
    } catch (const Error& error) {
      not_taken(error);
    } catch (const fs::filesystem_error& error) {
      not_taken(Error(Fault::host, error.what()));
    }
  }
  std::sort(found.refused.begin(), found.refused.end(),
            [](const RefusedHandIn& a, const RefusedHandIn& b) { return a.name < b.name; });
  for (const auto& [name, message] : found.refused) line(cat(shown(name), ": refused: ", message));
  return std::move(found.refused);
}

}  // namespace kjudge
