// SPDX-License-Identifier: Apache-2.0
#include "store/records.h"

#include "error.h"
#include "unfinished.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path record_folder(const fs::path& results, const std::string& kind) {
  return results / (kind + "s");
}

fs::path record_file(const fs::path& results, const std::string& kind, int number) {
  return record_folder(results, kind) / std::to_string(number) / (kind + ".json");
}

int add_record(const ResultsDirectory& results, const std::string& kind, const Json& record,
               const std::function<void(const fs::path&)>& fill) {
  const fs::path parent = record_folder(results.path(), kind);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) throw Error(Fault::host, cat(parent.string(), ": ", error.message()));
  sync_directory(results.path());
  sweep_unfinished(parent);
  const UnfinishedFolder folder(parent);
  if (fill) fill(folder.path());
  write_file_atomically(folder.path() / (kind + ".json"), print_json(record));
  const auto present = numbered(parent);
  for (int number = present.empty() ? 1 : present.back() + 1;; ++number) {
    const Renamed renamed = rename_new(folder.path(), parent / std::to_string(number));
    if (renamed == Renamed::done) return number;
    if (renamed == Renamed::gone) {
      throw Error(Fault::host, cat(folder.path().string(), ": was removed while it was written"));
    }
  }
}

}  // namespace kjudge
