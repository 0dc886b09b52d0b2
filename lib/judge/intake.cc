// SPDX-License-Identifier: Apache-2.0
#include "judge/intake.h"

#include <algorithm>

#include "archive.h"
#include "error.h"
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

std::vector<fs::path> waiting_in(const fs::path& from, const ReportLine& line) {
  if (!fs::is_directory(from)) {
    throw Error(Fault::usage, cat(from.string(), ": no folder of submissions"));
  }
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(from)) {
    const std::string name = item.path().filename();
    if (name.starts_with('.')) continue;
    if (std::any_of(name.begin(), name.end(),
                    [](unsigned char c) { return c < ' ' || c == 127; })) {
      line(cat(name, ": left out: its name has a control character; rename it"));
      continue;
    }
    std::string_view why_not;
    std::error_code error;
    if (item.is_symlink(error)) {  // judge may read what whoever made the link may not
      why_not = "a link; put the file or folder itself in its place";
    } else if (item.is_directory(error)) {
      if (entry_file(item.path()).empty()) {
        why_not = "a folder without submission.py or submission.cu at its root";
      }
    } else if (!item.is_regular_file(error)) {
      why_not = "not a file or folder";
    } else if (!is_source(item.path()) && !is_archive(item.path())) {
      why_not = "neither a .py or .cu file nor an archive nor a folder";
    }
    if (why_not.empty()) {
      found.push_back(item.path());
    } else {
      line(cat(name, ": left out: ", why_not));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void take_in(ResultsDirectory& results, const Challenge& challenge, const fs::path& from,
             const std::vector<SubmissionIdentity>& present, const ReportLine& line) {
  for (const fs::path& path : waiting_in(from, line)) {
    check_interrupt();
    try {
      results.add({path, run_of(path), challenge.name, challenge.limits.submission_bytes}, present);
    } catch (const Error& error) {
      if (error.fault() != Fault::submission) throw;
      line(cat(path.filename().string(), ": refused: ", error.what()));
    }
  }
}

}  // namespace kjudge
