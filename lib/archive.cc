// SPDX-License-Identifier: Apache-2.0
#include "archive.h"

// libarchive's archive.h by its path: <archive.h> is the one beside this file.
#include LIBARCHIVE_HEADER
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <set>

#include "decompressed_file.h"
#include "file.h"
#include "zip_directory.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffixes[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"};
// Headers, long names, what fills up blocks: of each file, and of a tar as a whole.
constexpr std::uint64_t kTarBytesOfFile = 16 << 10, kTarBytes = 1 << 20;
constexpr std::uint64_t kTarBytesOfLeftOut = 2 << 10;  // of what nobody named to hand it in
constexpr std::uint64_t kTarEnd = 1024;  // zeros, without which a cut tar may look whole
constexpr int kZstdLevel = 12;
constexpr std::string_view kNoFiles = "no files in it; make it of those to hand in";
constexpr std::string_view kAllLeftOut =
    "no files in it but those left out: below names that begin with a dot, __pycache__ and "
    "__MACOSX; make it of those to hand in";
constexpr std::string_view kLeaveOut =
    "; make the archive without the folders whose names begin with a dot, and __pycache__";

// What others make archives of, by the bytes that a file begins with.
constexpr std::pair<std::string_view, std::string_view> kOtherFormats[] = {
    {"\xfd\x37zXZ", "an xz"},       {"BZh", "a bzip2"},
    {"\x04\x22\x4d\x18", "an lz4"}, {"LZIP", "an lzip"},
    {"7z\xbc\xaf\x27\x1c", "a 7z"}, {"Rar!\x1a\x07", "a RAR"}};

std::string_view suffix_of(std::string_view name) {
  for (const std::string_view suffix : kSuffixes) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) return suffix;
  }
  return "";
}

// libarchive gives names in the locale's characters, and in "C" refuses those beyond ASCII.
class Utf8Locale {
 public:
  Utf8Locale() : unicode_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{})) {
    if (unicode_ != locale_t{}) before_ = ::uselocale(unicode_);
  }
  ~Utf8Locale() {
    if (unicode_ == locale_t{}) return;
    ::uselocale(before_);
    ::freelocale(unicode_);
  }
  Utf8Locale(const Utf8Locale&) = delete;

 private:
  locale_t unicode_, before_{};
};

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

class Unpacking {
 public:
  Unpacking(const fs::path& from, const fs::path& to, const ArchiveLimits& limits, Fault fault)
      : name_(from.filename().string()),
        to_(to),
        limits_(limits),
        fault_(fault),
        archive_bytes_(fs::file_size(from)),
        rules_(limits.names),
        reader_(archive_read_new(), archive_read_free) {
    archive* const reader = reader_.get();
    KJ_CHECK(reader != nullptr);
    const std::string first = first_bytes(from);
    if (first.starts_with("PK\x03\x04") || first.starts_with("PK\x05\x06")) {  // an entry, or none
      read_directory(from);
      // Not archive_read_support_format_zip, which takes a cut zip as well, entry by entry.
      archive_read_support_format_zip_seekable(reader);
      if (archive_read_open_filename(reader, from.c_str(), 1 << 16) != ARCHIVE_OK) unreadable();
      return;
    }
    for (const auto& [bytes, format] : kOtherFormats) {
      if (first.starts_with(bytes)) other_format_ = format;
    }
    // Not libarchive's filters: its gzip neither compares the checksum nor sees what follows.
    tar_.emplace(from, limits.bytes + limits.names.count * kTarBytesOfFile + kTarBytes +
                           limits.left_out_bytes + limits.left_out_count * kTarBytesOfLeftOut);
    archive_read_support_format_tar(reader);
    // To the end of the file, where zstd has its checksum; and nothing may follow a tar.
    KJ_CHECK(archive_read_set_format_option(reader, "tar", "read_concatenated_archives", "1") ==
             ARCHIVE_OK);
    if (archive_read_open(reader, this, nullptr, &Unpacking::read_tar, nullptr) != ARCHIVE_OK) {
      unreadable();
    }
  }

  void run() {
    archive_entry* entry = nullptr;
    for (;;) {
      entry_.clear();
      const int status = archive_read_next_header(reader_.get(), &entry);
      ++index_;
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK) unreadable();
      unpack(entry);
    }
    if (tar_ && files_ > 0 && zeros_ < kTarEnd) {
      damaged("cut short: a tar ends with zeros");
    }
    if (directory_ && !directory_->empty()) {
      damaged(cat(directory_->size(), " entries of its central directory are not there"));
    }
    if (files_ == 0) broken(left_out_ == 0 ? kNoFiles : kAllLeftOut);
  }

 private:
  static std::string first_bytes(const fs::path& file) {
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string first(8, '\0');
    if (!fd.valid() || ::pread(fd.get(), first.data(), first.size(), 0) < 0) {
      throw_errno(file.string());
    }
    return first;
  }

  void read_directory(const fs::path& zip) {
    try {
      ZipDirectory read = read_zip_directory(zip, limits_.names.count + limits_.left_out_count);
      show(read.entry);
      if (!read.rule.empty()) broken(read.rule);
      directory_ = std::move(read.names);
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed) throw;
      damaged(error.what());
    }
    if (directory_->empty()) broken(kNoFiles);
  }

  // libarchive's way to ask for more of a tar; no exception may pass it.
  static la_ssize_t read_tar(archive* reader, void* unpacking, const void** block) {
    Unpacking& self = *static_cast<Unpacking*>(unpacking);
    DecompressedFile& tar = *self.tar_;
    try {
      const std::string_view bytes = tar.next();
      const std::size_t last = bytes.find_last_not_of('\0');
      self.zeros_ = last == bytes.npos ? self.zeros_ + bytes.size() : bytes.size() - last - 1;
      if (tar.broken().empty()) {
        *block = bytes.data();
        return static_cast<la_ssize_t>(bytes.size());
      }
      archive_set_error(reader, EINVAL, "%s", tar.broken().c_str());
    } catch (...) {
      self.unreadable_ = std::current_exception();
    }
    return -1;
  }

  // The entry that messages are about.
  void show(const std::string& entry) {
    if (printable_name(entry) && entry.size() <= limits_.names.path_bytes) entry_ = entry;
  }
  [[noreturn]] void broken(std::string_view rule) const {
    throw Error(fault_, cat(printable_name(name_) ? name_ : "the archive", ": ",
                            entry_.empty() ? "" : entry_ + ": ", rule));
  }
  [[noreturn]] void damaged(std::string_view why) const {
    broken(cat("damaged (", why, "); make the archive anew"));
  }
  [[noreturn]] void unreadable() const {
    if (unreadable_ != nullptr) std::rethrow_exception(unreadable_);
    // A tar may begin with a name that looks like one of those.
    if (!other_format_.empty() && index_ <= 1) {
      broken(cat(other_format_,
                 " file, whatever its name; make a tar, tar.gz, tar.zst or zip in its place"));
    }
    const char* why = archive_error_string(reader_.get());
    broken(cat("damaged, or no tar, tar.gz, tar.zst or zip (",
               why != nullptr && printable_name(why) ? why : "no reason given",
               "); make the archive anew"));
  }

  void unpack(archive_entry* entry) {
    entry_ = cat("entry ", index_);
    const char* given = archive_entry_pathname(entry);
    if (given == nullptr) broken("its name is not UTF-8; rename it");
    if (directory_) {
      const auto named = directory_->find(given);
      if (named == directory_->end()) damaged("the central directory has no such name");
      directory_->erase(named);
    }
    std::string path = given;
    const auto type = archive_entry_filetype(entry);
    // As "tar -C folder ." writes them.
    while (path.starts_with("./")) path.erase(0, 2);
    if (type == AE_IFDIR) {
      if (path.empty() || path == ".") return;
      if (path.ends_with('/')) path.pop_back();
    }
    show(path);
    if (left_out_path(path)) {  // whatever it is: of a folder nobody looks at it either
      leave_out(entry);
      return;
    }
    check_kind(entry);
    const bool folder = type == AE_IFDIR;
    const std::string rule =
        rules_.add(path, folder ? NameRules::Kind::folder : NameRules::Kind::file);
    if (!rule.empty()) broken(rule);
    const fs::path target = to_ / path;
    if (folder) {
      fs::create_directories(target);
    } else {
      fs::create_directories(target.parent_path());
      ++files_;
      write(entry, target);
    }
  }

  // libarchive passes over the data when it looks for the next entry.
  void leave_out(archive_entry* entry) {
    if (++left_out_ > limits_.left_out_count) {
      broken(cat("with it more than ", limits_.left_out_count, " names are left out", kLeaveOut));
    }
    if (!tar_ || archive_entry_size(entry) <= 0) return;  // a zip's is not decompressed
    const auto more = static_cast<std::uint64_t>(archive_entry_size(entry));
    if (more > limits_.left_out_bytes - passed_over_) {
      broken(cat("with it what is left out is larger than ", limits_.left_out_bytes, " bytes",
                 kLeaveOut));
    }
    passed_over_ += more;
    if (beyond_ratio(0)) {
      broken(cat("with it the files and what is left out are more than ", limits_.ratio,
                 " times as large as the archive", kLeaveOut));
    }
  }

  void check_kind(archive_entry* entry) const {
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_filetype(entry) == AE_IFLNK) {
      broken("a link; put the file itself in its place");
    }
    if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != AE_IFDIR) {
      broken(kNeither);
    }
    if (archive_entry_filetype(entry) == AE_IFREG && (archive_entry_perm(entry) & 06000) != 0) {
      broken(kSetId);
    }
  }

  void write(archive_entry* entry, const fs::path& target) {
    if (archive_entry_size_is_set(entry) != 0 && archive_entry_size(entry) > 0) {
      // Also of a sparse file: its holes are unpacked.
      check_size(static_cast<std::uint64_t>(archive_entry_size(entry)));
    }
    const mode_t mode = (archive_entry_perm(entry) & 0111) != 0 ? 0755 : 0644;
    const Fd file(
        ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file.valid() || ::fchmod(file.get(), mode) != 0) throw_errno(target.string());
    std::array<char, 1 << 16> block;
    for (;;) {
      const la_ssize_t n = archive_read_data(reader_.get(), block.data(), block.size());
      if (n == 0) return;
      if (n < 0) unreadable();
      check_size(static_cast<std::uint64_t>(n));
      unpacked_ += static_cast<std::uint64_t>(n);
      for (std::string_view rest(block.data(), static_cast<std::size_t>(n)); !rest.empty();) {
        const ssize_t written = ::write(file.get(), rest.data(), rest.size());
        if (written < 0 && errno != EINTR) throw_errno(target.string());
        if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
      }
    }
  }

  void check_size(std::uint64_t more) const {
    if (more > limits_.bytes - unpacked_) {
      broken(cat("with it the files are larger than ", limits_.bytes,
                 " bytes; hand in less, and have prepare compute what can be computed"));
    }
    if (beyond_ratio(more)) {
      broken(cat("with it the files are more than ", limits_.ratio,
                 " times as large as the archive; leave it out, or hand in a .tar, which is not "
                 "compressed"));
    }
  }

  bool beyond_ratio(std::uint64_t more) const {
    const std::uint64_t read = unpacked_ + passed_over_ + more;
    return read > limits_.free_of_ratio && read / limits_.ratio >= archive_bytes_;
  }

  std::string name_;
  fs::path to_;
  ArchiveLimits limits_;
  Fault fault_;
  std::uint64_t archive_bytes_;
  NameRules rules_;
  std::optional<DecompressedFile> tar_;                  // unless it is a zip
  std::optional<std::multiset<std::string>> directory_;  // names of a zip that have not come yet
  std::string_view other_format_;                        // that the file looks like
  std::exception_ptr unreadable_;                        // why the file cannot be read
  Reader reader_;
  std::string entry_;  // for messages
  std::size_t index_ = 0, files_ = 0, left_out_ = 0;
  std::uint64_t passed_over_ = 0;           // bytes of what is left out
  std::uint64_t unpacked_ = 0, zeros_ = 0;  // zeros_: at the end of what was read of a tar
};

// A header of POSIX ustar: octal numbers as text, at fixed places.
class UstarHeader {
 public:
  explicit UstarHeader(const ArchiveFile& file) {
    const auto [prefix, name] = split(file.name);
    text(0, 100, name);
    number(100, 8, file.executable ? 0755 : 0644);
    number(108, 8, 0);  // user
    number(116, 8, 0);  // group
    number(124, 12, file.bytes.size());
    number(136, 12, 0);  // time
    text(148, 8, "        ");
    text(156, 1, "0");  // a regular file
    text(257, 8,
         std::string_view("ustar\0"
                          "00",
                          8));
    text(345, 155, prefix);
    std::uint64_t sum = 0;
    for (const char c : bytes_) sum += static_cast<unsigned char>(c);
    number(148, 7, sum);
  }
  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  static std::pair<std::string_view, std::string_view> split(std::string_view path) {
    if (!fits_archive(path)) {
      throw Error(Fault::usage, cat(path, ": too long a path for a tar archive; shorten it"));
    }
    if (path.size() <= 100) return {"", path};
    const std::size_t slash = path.find('/', path.size() - 101);
    return {path.substr(0, slash), path.substr(slash + 1)};
  }
  void text(std::size_t at, std::size_t room, std::string_view value) {
    KJ_CHECK(value.size() <= room);
    std::copy(value.begin(), value.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void number(std::size_t at, std::size_t room, std::uint64_t value) {
    for (std::size_t i = at + room - 1; i-- > at; value /= 8) {
      bytes_[i] = static_cast<char>('0' + value % 8);
    }
    KJ_CHECK(value == 0);
    bytes_[at + room - 1] = '\0';
  }

  std::array<char, 512> bytes_{};
};

}  // namespace

bool is_archive(const fs::path& path) { return !suffix_of(path.filename().native()).empty(); }

std::string archive_stem(const fs::path& path) {
  const std::string name = path.filename();
  return name.substr(0, name.size() - suffix_of(name).size());
}

void unpack_archive(const fs::path& archive, const fs::path& to, const ArchiveLimits& limits,
                    Fault fault) {
  const Utf8Locale locale;
  if (!fs::create_directory(to)) throw Error(Fault::host, cat(to.string(), ": exists already"));
  try {
    Unpacking(archive, to, limits, fault).run();
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw;
  }
}

bool fits_archive(std::string_view name) {
  if (name.size() <= 100) return true;
  const std::size_t slash = name.find('/', name.size() - 101);
  return slash != name.npos && slash <= 155 && slash + 1 < name.size();
}

std::string make_archive(std::vector<ArchiveFile> files) {
  // libarchive writes every format or none: its static library would bring libxml2 and ICU with it.
  std::sort(files.begin(), files.end(),
            [](const ArchiveFile& a, const ArchiveFile& b) { return a.name < b.name; });
  std::string tar;
  for (const ArchiveFile& file : files) {
    tar += UstarHeader(file).bytes();
    tar += file.bytes;
    tar.resize((tar.size() + 511) / 512 * 512);
  }
  tar.resize(tar.size() + 1024);
  std::string packed(ZSTD_compressBound(tar.size()), '\0');
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd(ZSTD_createCCtx(),
                                                                  &ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_compressionLevel, kZstdLevel);
  ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_checksumFlag, 1);
  const std::size_t size =
      ZSTD_compress2(zstd.get(), packed.data(), packed.size(), tar.data(), tar.size());
  KJ_CHECK(ZSTD_isError(size) == 0);
  packed.resize(size);
  return packed;
}

}  // namespace kjudge
