// SPDX-License-Identifier: Apache-2.0
// Any bytes as an archive: whatever it says, files land in the new folder or nowhere.

#include "archive.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "file.h"

using namespace kjudge;
namespace fs = std::filesystem;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr std::size_t kTarBlock = 512;

// Right checksums over headers that may be wrong in every other way.
void mend_tar(std::uint8_t* data, std::size_t size) {
  for (std::size_t at = 0; at + kTarBlock <= size; at += kTarBlock) {
    std::uint8_t* header = data + at;
    if (std::memcmp(header + 257, "ustar", 5) != 0) continue;
    std::memset(header + 148, ' ', 8);
    const unsigned sum = std::accumulate(header, header + kTarBlock, 0u);
    char text[8];
    std::snprintf(text, sizeof(text), "%06o", sum & 0777777);
    std::memcpy(header + 148, text, 7);
  }
}

void require(bool held) {
  if (!held) std::abort();
}

void check_tree(const fs::path& folder) {
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    const auto status = item.symlink_status();
    require(fs::is_regular_file(status) || fs::is_directory(status));
    require(!left_out(item.path().filename().native()));
    const auto odd = fs::perms::set_uid | fs::perms::set_gid | fs::perms::sticky_bit;
    require((status.permissions() & odd) == fs::perms::none);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const TempDir folder("kjudge-fuzz");
  fs::create_directory(folder.path() / "in");
  write_file_atomically(folder.path() / "in/a", {reinterpret_cast<const char*>(data), size});
  const fs::path to = folder.path() / "in/to";
  ArchiveLimits limits;
  limits.names.count = 20;
  limits.bytes = limits.left_out_bytes = 4 << 20;
  limits.left_out_count = 20;
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

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned) {
  size = LLVMFuzzerMutate(data, size, most);
  mend_tar(data, size);
  return size;
}
