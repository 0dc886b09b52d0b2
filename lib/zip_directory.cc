// SPDX-License-Identifier: Apache-2.0
#include "zip_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "error.h"
#include "file.h"
#include "file_names.h"

namespace kjudge {
namespace {

// The end of a zip (PKWARE's APPNOTE 4.3): central headers, one for each entry, then
//   end   = "PK" 5 6, this disk u16, disk of the directory u16, entries here u16, entries u16,
//           bytes of the directory u32, its offset u32, bytes of the comment u16, comment
//   header = "PK" 1 2, version u8, system u8, 2 bytes, flags u16, method u16, 4 bytes, sums, bytes
//   of
//            name u16, of extra u16, of comment u16, disk u16, 4 bytes, mode u16 (of those systems
//            that have one), offset of the entry u32, name, extra, comment
//   sums   = CRC u32, packed bytes u32, bytes u32
// An entry (4.3.7), whose sums stand behind the data where it was written in one go, to a pipe:
//   entry = "PK" 3 4, version u16, flags u16, method u16, 4 bytes, sums, bytes of name u16, of
//           extra u16, name, extra, data, descriptor where the flags say so
//   descriptor = "PK" 7 8 or nothing, sums, the sizes in 4 or 8 bytes
constexpr std::size_t kEndBytes = 22, kHeaderBytes = 46, kMostComment = 0xffff, kEntryBytes = 30;
// Of the flags: encrypted, strongly or not; encrypted in the directory, where names are hidden.
constexpr std::uint64_t kEncrypted = 1 << 0 | 1 << 6 | 1 << 13;
constexpr std::uint64_t kHasDescriptor = 1 << 3;
constexpr std::uint64_t kUnix = 3, kDarwin = 19;
constexpr std::uint64_t kMostDirectory = 16 << 20;
constexpr std::uint64_t kMostHeader = 16 << 10;  // a name, some numbers and mostly no comment
constexpr std::string_view kEntryMark = "PK\x03\x04", kDescriptorMark = "PK\x07\x08";

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

struct Entry {
  std::string name;
  std::uint64_t offset = 0, flags = 0, mode = 0;  // mode 0: it has none
  std::string method, sums;                       // as they stand there
};

std::uint64_t mode_of(std::string_view header) {
  const std::uint64_t system = number(header, 5, 1);
  return system == kUnix || system == kDarwin ? number(header, 40, 2) : 0;
}

// libarchive takes what it does not know for a file.
bool is_special(std::uint64_t mode) {
  const std::uint64_t type = mode & S_IFMT;
  return type != 0 && type != S_IFREG && type != S_IFDIR && type != S_IFLNK;
}

// Bytes of the descriptor of `entry` that `text` begins with; 0: there is none.
std::size_t descriptor_bytes(std::string_view text, const Entry& entry) {
  for (const std::string_view mark : {kDescriptorMark, std::string_view()}) {
    for (const bool wide : {false, true}) {
      const std::string zeros(wide ? 4 : 0, '\0');
      const std::string descriptor =
          cat(mark, entry.sums.substr(0, 8), zeros, entry.sums.substr(8), zeros);
      if (text.starts_with(descriptor)) return descriptor.size();
    }
  }
  return 0;
}

// The entries lie one behind the other from the start of the file to the directory, at `end`.
class EntryWalk {
 public:
  EntryWalk(const Fd& file, std::uint64_t end) : file_(file), end_(end) {}

  // Adds the flags that each entry's own head has.
  void run(std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
    if (!entries.empty() && entries[0].offset != 0) refuse("bytes before its first entry");
    for (Entry& entry : entries) {
      come_to(entry.offset);
      pass(entry);
    }
    if (!entries.empty()) come_to(end_);
  }

 private:
  void come_to(std::uint64_t next) const {
    if (at_ > next) refuse("two entries at the same place");
    if (at_ < next) refuse_between(next);
  }

  [[noreturn]] void refuse_between(std::uint64_t next) const {
    const std::string start = read_at(file_, at_, std::min<std::uint64_t>(kEntryBytes, next - at_));
    if (start.size() == kEntryBytes && start.starts_with(kEntryMark)) {
      const std::uint64_t room = next - at_ - kEntryBytes;
      const std::string name =
          read_at(file_, at_ + kEntryBytes, std::min(room, number(start, 26, 2)));
      refuse(cat("its central directory leaves out the entry ",
                 printable_name(name) ? name : cat("at byte ", at_)));
    }
    refuse(cat("bytes ", at_, " to ", next, " belong to no entry of its central directory"));
  }

  // Sizes of all ones stand elsewhere, in 8 bytes; the directory's hold.
  static bool agrees(std::string_view sums, const Entry& entry) {
    return sums == entry.sums || (sums.substr(0, 4) == entry.sums.substr(0, 4) &&
                                  sums.substr(4) == std::string(8, '\xff'));
  }

  void pass(Entry& entry) {
    const std::uint64_t header = kEntryBytes + entry.name.size();
    if (header > end_ - at_) refuse("an entry is cut short");
    const std::string start = read_at(file_, at_, header);
    if (!start.starts_with(kEntryMark)) refuse(cat("no entry at byte ", at_));
    if (number(start, 26, 2) != entry.name.size() || start.substr(kEntryBytes) != entry.name) {
      refuse("an entry has another name in its central directory");
    }
    const std::uint64_t flags = number(start, 6, 2);
    const bool described = (flags & kHasDescriptor) != 0;
    entry.flags |= flags;
    if (start.substr(8, 2) != entry.method || !(described || agrees(start.substr(14, 12), entry))) {
      refuse("an entry has another method, CRC or size in its central directory");
    }
    at_ += header + number(start, 28, 2) + number(entry.sums, 4, 4);
    if (at_ >= end_ || !described) return;
    constexpr std::uint64_t kMostBytes = 24;
    at_ += descriptor_bytes(read_at(file_, at_, std::min(kMostBytes, end_ - at_)), entry);
  }

  const Fd& file_;
  std::uint64_t end_, at_ = 0;
};

}  // namespace

ZipDirectory read_zip_directory(const std::filesystem::path& path, std::size_t most_entries) {
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
    return {{}, "a zip64, for more than 4 GiB or 65,534 entries; make a tar.gz in its place", ""};
  }
  if (number(end, 4, 2) != 0 || number(end, 6, 2) != 0 || number(end, 8, 2) != entries) {
    return {{}, "one of several parts of a zip; make it in one part", ""};
  }
  if (entries > most_entries) {
    return {{}, cat("more than ", most_entries, " files and folders; hand in fewer"), ""};
  }
  // Before it is read into memory.
  if (bytes > kMostDirectory) {
    return {{},
            cat("more than ", kMostDirectory,
                " bytes of names and what is said of them; leave out what is not to be handed in"),
            ""};
  }
  if (bytes > entries * kMostHeader)
    refuse("its central directory is larger than its entries need");
  if (offset + bytes != tail_at + at) refuse("its central directory does not lie where it says");

  const std::string directory = read_at(file, offset, bytes);
  std::vector<Entry> found;
  std::string_view rest = directory;
  for (std::uint64_t i = 0; i < entries; ++i) {
    if (rest.size() < kHeaderBytes || !rest.starts_with("PK\x01\x02")) {
      refuse(cat("its central directory has ", i, " entries, not ", entries));
    }
    const std::uint64_t name = number(rest, 28, 2);
    const std::uint64_t whole = kHeaderBytes + name + number(rest, 30, 2) + number(rest, 32, 2);
    if (whole > rest.size()) refuse("its central directory is cut short");
    found.push_back({std::string(rest.substr(kHeaderBytes, name)), number(rest, 42, 4),
                     number(rest, 8, 2), mode_of(rest), std::string(rest.substr(10, 2)),
                     std::string(rest.substr(16, 12))});
    rest.remove_prefix(whole);
  }
  if (!rest.empty()) refuse("its central directory has more entries than it says");
  EntryWalk(file, offset).run(found);
  ZipDirectory read;
  for (const Entry& entry : found) {
    read.names.insert(entry.name);
    if (!read.rule.empty() || left_out_path(entry.name)) continue;
    if ((entry.flags & kEncrypted) != 0) {
      read.rule = "encrypted; make the archive without a password";
    } else if (entry.name.find('\\') != entry.name.npos) {
      read.rule =
          "a backslash in its name; rename it, or make the archive with a program that "
          "writes folders with \"/\"";
    } else if (is_special(entry.mode)) {
      read.rule = kNeither;
    }
    if (!read.rule.empty()) read.entry = entry.name;
  }
  return read;
}

}  // namespace kjudge
