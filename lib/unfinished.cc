// SPDX-License-Identifier: Apache-2.0
#include "unfinished.h"

#include <chrono>
#include <string_view>
#include <system_error>

#include "error.h"
#include "process_identity.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".new-";

}  // namespace

std::string unfinished_name(const std::string& more) {
  return cat(kUnfinished, mark_of(this_process()), "-", more);
}

bool is_unfinished(const fs::path& path) {
  return path.filename().string().starts_with(kUnfinished);
}

void sweep_unfinished(const fs::path& folder) {
  constexpr auto kOld = std::chrono::hours(24);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_unfinished(at->path())) continue;
    const std::string name = at->path().filename().string();
    const std::string mark = name.substr(kUnfinished.size(), name.rfind('-') - kUnfinished.size());
    std::error_code gone;
    const auto written = fs::last_write_time(at->path(), gone);
    if (gone) continue;
    const bool old = fs::file_time_type::clock::now() - written > kOld;
    if (old || has_ended(mark)) fs::remove_all(at->path(), gone);
  }
}

}  // namespace kjudge
