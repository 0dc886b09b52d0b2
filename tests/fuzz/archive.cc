// SPDX-License-Identifier: Apache-2.0
// Any bytes as an archive: whatever it says, files land in the new folder or nowhere.

#include "archive.h"

#include <cstdlib>
#include <fstream>

#include "file.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

void require(bool held) {
  if (!held) std::abort();
}

void check_tree(const fs::path& folder) {
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    const auto status = item.symlink_status();
    require(fs::is_regular_file(status) || fs::is_directory(status));
    const auto odd = fs::perms::set_uid | fs::perms::set_gid | fs::perms::sticky_bit;
    require((status.permissions() & odd) == fs::perms::none);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const TempDir folder("kjudge-fuzz");
  fs::create_directory(folder.path() / "in");
  std::ofstream(folder.path() / "in/a")
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const fs::path to = folder.path() / "in/to";
  ArchiveLimits limits;
  limits.names.count = 20;
  limits.bytes = 4 << 20;
  bool taken = true;
  try {
    unpack_archive(folder.path() / "in/a", to, limits, Fault::submission);
    check_tree(to);
  } catch (const Error& error) {
    require(error.fault() == Fault::submission);
    taken = false;
  }
  require(fs::exists(to) == taken);
  for (const auto& beside : {folder.path(), folder.path() / "in"}) {
    for (const auto& item : fs::directory_iterator(beside)) {
      const std::string name = item.path().filename();
      require(name == "in" || name == "a" || name == "to");
    }
  }
  return 0;
}
