// SPDX-License-Identifier: Apache-2.0
#include "zip_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "error.h"
#include "file.h"

namespace kjudge {
namespace {

// The end of a zip (PKWARE's APPNOTE 4.3): central headers, one for each entry, then
//   end   = "PK" 5 6, this disk u16, disk of the directory u16, entries here u16, entries u16,
//           bytes of the directory u32, its offset u32, bytes of the comment u16, comment
//   header = "PK" 1 2, 16 bytes, u32 3 times (CRC, sizes), bytes of name u16, of extra u16,
//           of comment u16, disk u16, 6 bytes, offset of the entry u32, name, extra, comment
constexpr std::size_t kEndBytes = 22, kHeaderBytes = 46, kMostComment = 0xffff;

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

[[noreturn]] void refuse(std::string_view why) { throw Error(Fault::malformed, std::string(why)); }

std::string read_at(const Fd& file, std::uint64_t at, std::uint64_t size) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t n =
        ::pread(file.get(), bytes.data() + done, size - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("zip");
    if (n == 0) refuse("it became shorter while it was read");
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

std::multiset<std::string> read_zip_directory(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) throw_errno(path.string());
  const std::uint64_t size = std::filesystem::file_size(path);
  const std::uint64_t tail_at = size - std::min<std::uint64_t>(size, kEndBytes + kMostComment);
  const std::string tail = read_at(file, tail_at, size - tail_at);
  const std::size_t at = tail.rfind("PK\x05\x06");
  if (at == tail.npos || tail.size() - at < kEndBytes) refuse("no central directory at its end");
  const std::string_view end = std::string_view(tail).substr(at);
  if (number(end, 20, 2) != end.size() - kEndBytes) refuse("bytes after its central directory");
  const std::uint64_t entries = number(end, 10, 2);
  const std::uint64_t bytes = number(end, 12, 4), offset = number(end, 16, 4);
  if (entries == 0xffff || bytes == 0xffffffff || offset == 0xffffffff) {
    refuse("zip64, for more than 4 GiB or 65,534 entries");
  }
  if (number(end, 4, 2) != 0 || number(end, 6, 2) != 0 || number(end, 8, 2) != entries) {
    refuse("one of several disks");
  }
  if (offset + bytes != tail_at + at) refuse("its central directory does not lie where it says");

  const std::string directory = read_at(file, offset, bytes);
  std::multiset<std::string> names;
  std::set<std::uint64_t> places;
  std::string_view rest = directory;
  for (std::uint64_t i = 0; i < entries; ++i) {
    if (rest.size() < kHeaderBytes || !rest.starts_with("PK\x01\x02")) {
      refuse(cat("its central directory has ", i, " entries, not ", entries));
    }
    const std::uint64_t name = number(rest, 28, 2);
    const std::uint64_t whole = kHeaderBytes + name + number(rest, 30, 2) + number(rest, 32, 2);
    if (whole > rest.size()) refuse("its central directory is cut short");
    names.emplace(rest.substr(kHeaderBytes, name));
    if (!places.insert(number(rest, 42, 4)).second) refuse("two entries at the same place");
    rest.remove_prefix(whole);
  }
  if (!rest.empty()) refuse("its central directory has more entries than it says");
  if (!places.empty() && *places.begin() != 0) refuse("bytes before its first entry");
  return names;
}

}  // namespace kjudge
