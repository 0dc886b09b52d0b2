// SPDX-License-Identifier: Apache-2.0
// Hostile archives, made here byte by byte: each breaks one rule.
#include "archive.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "file.h"
#include "file_names.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

struct TarEntry {
  std::string name, bytes = "x";
  char type = '0';
  unsigned mode = 0644;
  std::string link = "";
};

void put(std::string& header, std::size_t at, std::string_view text) {
  header.replace(at, text.size(), text);
}

std::string octal(std::uint64_t value, int digits) {
  std::string text;
  for (int i = 0; i < digits; ++i, value /= 8) text.insert(0, 1, char('0' + value % 8));
  return text;
}

std::string tar_header(const TarEntry& entry, std::uint64_t size) {
  std::string header(512, '\0');
  put(header, 0, entry.name);
  put(header, 100, octal(entry.mode, 7));
  put(header, 108, octal(0, 7));
  put(header, 116, octal(0, 7));
  put(header, 124, octal(size, 11));
  put(header, 136, octal(0, 11));
  put(header, 148, "        ");
  header[156] = entry.type;
  put(header, 157, entry.link);
  put(header, 257, "ustar");
  put(header, 263, "00");
  unsigned sum = 0;
  for (unsigned char c : header) sum += c;
  put(header, 148, octal(sum, 6) + '\0');
  return header;
}

std::string tar(const std::vector<TarEntry>& entries) {
  std::string bytes;
  for (const TarEntry& entry : entries) {
    const std::string data = entry.type == '0' ? entry.bytes : "";
    bytes += tar_header(entry, data.size()) + data;
    bytes.resize((bytes.size() + 511) / 512 * 512);
  }
  return bytes + std::string(1024, '\0');
}

std::string zstd(const std::string& bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3));
  return packed;
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string little(std::uint64_t value, int size) {
  std::string text;
  for (int i = 0; i < size; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

struct ZipEntry {
  std::string name, bytes = "x";
  std::string listed = name;  // its name in the central directory; empty: not there
  unsigned flags = 0, listed_flags = flags;
  unsigned mode = 0100644;
};

// Without compression.
std::string zip(const std::vector<ZipEntry>& entries, const std::string& comment = "") {
  std::string files, directory;
  int count = 0;
  for (const ZipEntry& entry : entries) {
    const auto* bytes = reinterpret_cast<const Bytef*>(entry.bytes.data());
    const auto sum = crc32(0, bytes, static_cast<uInt>(entry.bytes.size()));
    const std::string sums =
        little(sum, 4) + little(entry.bytes.size(), 4) + little(entry.bytes.size(), 4);
    const auto start = [&](unsigned flags) {
      return little(20, 2) + little(flags, 2) + little(0, 2) + little(0, 4) + sums;
    };
    if (!entry.listed.empty()) {
      ++count;
      directory += "PK\x01\x02" + little(0x314, 2) + start(entry.listed_flags) +
                   little(entry.listed.size(), 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                   little(0, 2) + little(std::uint64_t{entry.mode} << 16, 4) +
                   little(files.size(), 4) + entry.listed;
    }
    files += "PK\x03\x04" + start(entry.flags) + little(entry.name.size(), 2) + little(0, 2) +
             entry.name + entry.bytes;
  }
  return files + directory + "PK\x05\x06" + little(0, 4) + little(count, 2) + little(count, 2) +
         little(directory.size(), 4) + little(files.size(), 4) + little(comment.size(), 2) +
         comment;
}

// Unpacked into `to`; the message without the archive's name, "": none.
std::string unpacked(const TempDir& folder, const std::string& bytes, const std::string& name,
                     const ArchiveLimits& limits = {}) {
  const fs::path file = folder.path() / name;
  fs::remove_all(folder.path() / "to");
  fs::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
  try {
    unpack_archive(file, folder.path() / "to", limits, Fault::submission);
    return "";
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::submission);
    CHECK_FALSE(fs::exists(folder.path() / "to"));
    const std::string message = error.what();
    REQUIRE(message.starts_with(name + ": "));
    return message.substr(name.size() + 2);
  }
}

constexpr const char* kNoFiles = "no files in it; make it of those to hand in";

std::string refused(const std::vector<TarEntry>& entries, const ArchiveLimits& limits = {}) {
  const TempDir folder;
  return unpacked(folder, tar(entries), "a.tar", limits);
}

}  // namespace

TEST_CASE("archive: files, folders and modes come out") {
  const TempDir folder;
  CHECK(unpacked(folder,
                 tar({{"./", "", '5', 0777},
                      {"./a.py", "one"},
                      {"./sub/", "", '5', 0700},
                      {"./sub/\xc3\xa4.sh", "two", '0', 0751},
                      {"deep/er/b", ""}}),
                 "a.tar") == "");
  const fs::path to = folder.path() / "to";
  CHECK(read_file(to / "a.py") == "one");
  CHECK(read_file(to / "sub/\xc3\xa4.sh") == "two");
  CHECK(read_file(to / "deep/er/b") == "");
  struct stat status {};
  REQUIRE(::stat((to / "a.py").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0644);
  REQUIRE(::stat((to / "sub/\xc3\xa4.sh").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0755);
}

TEST_CASE("archive: names that lead out, or are another's elsewhere") {
  const std::string absolute =
      "/etc/passwd: an absolute name; names are relative to the folder handed in";
  CHECK(refused({{"/etc/passwd"}}) == absolute);
  CHECK(refused({{"a/../../b"}}).starts_with("a/../../b: \"..\" in its name"));
  CHECK(refused({{"../b"}}).starts_with("../b: \"..\" in its name"));
  CHECK(refused({{"..", "", '5'}}).starts_with("..: \"..\" in its name"));
  CHECK(refused({{"a//b"}}) == "a//b: its name has an empty part or \".\"; rename it");
  CHECK(refused({{"a/./b"}}) == "a/./b: its name has an empty part or \".\"; rename it");
  CHECK(refused({{"a"}, {"b\nc"}}) ==
        "entry 2: its name is not UTF-8 or holds control characters; rename it");
  CHECK(refused({{"b\xff"}}).starts_with("entry 1: its name is not UTF-8"));
  CHECK(refused({{"b\xc0\xaf"}}).starts_with("entry 1: its name is not UTF-8"));
  CHECK(refused({{"a\xe2\x80\xaeyp.x"}}).starts_with("entry 1: its name is not UTF-8 or holds"));
  CHECK(refused({{"a"}, {"a"}}) == "a: the same name twice; keep one of them");
  CHECK(refused({{"./a"}, {"a"}}) == "a: the same name twice; keep one of them");
  CHECK(refused({{"a"}, {"a/b"}}) == "a/b: a is a file and a folder; rename one");
  CHECK(refused({{"a/b"}, {"a"}}) == "a: the same name twice; keep one of them");
  CHECK(refused({{"a", "", '5'}, {"a", "", '5'}, {"a/b"}}) == "");
  CHECK(refused({{"Ab"}, {"aB"}}) ==
        "aB: its name differs from Ab in upper and lower case alone; rename it");
  CHECK(refused({{"x/a"}, {"X/b"}}) ==
        "X/b: its name differs from x in upper and lower case alone; rename it");
  CHECK(refused({{"\xc3\xa4"}, {"\xc3\x84"}})
            .starts_with("\xc3\x84: its name differs from \xc3\xa4 in upper"));
  CHECK(
      refused({{"\xc3\xa4"}, {"a\xcc\x88"}}) ==
      "a\xcc\x88: its name holds combining characters, which some file systems change; rename it");
  CHECK(refused({{"\xe2\x84\xab"}}).find("combining characters") != std::string::npos);  // angstrom
}

TEST_CASE("archive: only files and folders, without odd bits") {
  CHECK(refused({{"a", "", '2', 0777, "b"}}) == "a: a link; put the file itself in its place");
  CHECK(refused({{"b"}, {"a", "", '1', 0644, "b"}}) ==
        "a: a link; put the file itself in its place");
  const std::string neither =
      "a: neither a file nor a folder; devices, FIFOs and sockets may not be handed in: leave it "
      "out";
  for (const char type : {'3', '4', '6'}) CHECK(refused({{"a", "", type}}) == neither);
  const std::string set_id = "a: a setuid or setgid bit; take it away with chmod ug-s";
  for (const unsigned bit : {04000u, 02000u, 06000u}) {
    CHECK(refused({{"a", "x", '0', 0755 | bit}}) == set_id);
  }
  // As folders of a group have them, and of no effect on a file.
  CHECK(refused({{"a", "", '5', 03755}, {"a/b"}, {"c", "x", '0', 01644}}) == "");
}

TEST_CASE("archive: what is left out of folders is left out of archives, whatever it is") {
  const TempDir folder;
  std::vector<TarEntry> entries = {{"s/a"},
                                   {"s/.x", "x", '0', 04755},
                                   {"s/__pycache__/b", "", '2', 0777, "/etc/passwd"},
                                   {"s/.venv/bin/python", "", '2', 0777, "../../../x"},
                                   {"s/.x2/pipe", "", '6'},
                                   {"s/__MACOSX/\xff\x1b"},
                                   {"s/.git/A"},
                                   {"s/.git/a"},
                                   {"s/.git/a"},
                                   {"s/.y/" + std::string(90, 'd') + "/."}};
  for (int i = 0; i < 1200; ++i) entries.push_back({cat("s/.git/", i)});
  CHECK(unpacked(folder, tar(entries), "a.tar") == "");
  const fs::path to = folder.path() / "to/s";
  CHECK(std::distance(fs::directory_iterator(to), {}) == 1);
  CHECK(read_file(to / "a") == "x");
  std::vector<ZipEntry> zipped = {{"a"},
                                  {".x/" + std::string(250, 'n')},
                                  {".x/pipe", "", ".x/pipe", 0, 0, 010644},
                                  {".x/link", "/etc", ".x/link", 0, 0, 0120777},
                                  {".x/secret", "x", ".x/secret", 1},
                                  {".x/s\\b"}};
  for (int i = 0; i < 1200; ++i) zipped.push_back({cat(".git/", i)});
  CHECK(unpacked(folder, zip(zipped), "a.zip") == "");
  CHECK(std::distance(fs::directory_iterator(folder.path() / "to"), {}) == 1);
  // Names that lead out are no others'.
  CHECK(refused({{"a"}, {".x/../../b"}}).starts_with(".x/../../b: \"..\" in its name"));
  CHECK(refused({{"a"}, {"/.x/b"}}).starts_with("/.x/b: an absolute name"));
  CHECK(refused({{".x/a"}}).starts_with("no files in it but those left out"));
}

TEST_CASE("archive: what is left out is read over within limits alone") {
  ArchiveLimits limits;
  limits.left_out_count = 2;
  limits.left_out_bytes = 5000;
  const std::string how =
      "; make the archive without the folders whose names begin with a dot, and __pycache__";
  const std::string half(2500, 'x');
  CHECK(refused({{"a"}, {".x/a", half}, {".x/b", half}}, limits) == "");
  CHECK(refused({{"a"}, {".x/a", half}, {".x/b", half + "x"}}, limits) ==
        ".x/b: with it what is left out is larger than 5000 bytes" + how);
  CHECK(refused({{"a"}, {".x/a"}, {".x/b"}, {".x/c"}}, limits) ==
        ".x/c: with it more than 2 names are left out" + how);
  const TempDir folder;
  CHECK(unpacked(folder, zip({{"a"}, {".x/a"}, {".x/b"}, {".x/c"}}), "a.zip", limits) ==
        ".x/c: with it more than 2 names are left out" + how);
  CHECK(
      unpacked(folder, zstd(tar({{"a"}, {".x/bomb", std::string(64 << 20, '\0')}})), "a.tar.zst") ==
      ".x/bomb: with it the files and what is left out are more than 200 times as large as the "
      "archive" +
          how);
}

TEST_CASE("archive: a zip's FIFO is no file") {
  const TempDir folder;
  for (const unsigned type : {010000u, 020000u, 060000u, 0140000u}) {
    CHECK(unpacked(folder, zip({{"a"}, {"b", "", "b", 0, 0, type | 0644}}), "a.zip") ==
          "b: neither a file nor a folder; devices, FIFOs and sockets may not be handed in: leave "
          "it out");
  }
  CHECK(unpacked(folder, zip({{"a"}, {"b", "c", "b", 0, 0, 0120777}}), "a.zip") ==
        "b: a link; put the file itself in its place");
  CHECK(unpacked(folder, zip({{"a"}, {"b", "", "b", 0, 0, 0644}}), "a.zip") == "");
}

TEST_CASE("archive: a link cannot be written through") {
  const TempDir folder;
  CHECK(unpacked(folder, tar({{"a", "", '2', 0777, ".."}, {"a/escaped"}}), "a.tar") ==
        "a: a link; put the file itself in its place");
  CHECK_FALSE(fs::exists(folder.path() / "escaped"));
}

TEST_CASE("archive: limits on count, depth, names and bytes") {
  ArchiveLimits limits;
  limits.names = {.count = 3, .name_bytes = 10, .path_bytes = 24, .depth = 2};
  limits.bytes = 1000;
  CHECK(refused({{"a"}, {"b"}, {"c"}}, limits) == "");
  CHECK(refused({{"a"}, {"b/c"}, {"d"}}, limits) ==
        "d: more than 3 files and folders; hand in fewer");
  CHECK(refused({{"a/b/c"}}, limits) == "");
  CHECK(refused({{"a/b/c/d"}}, limits) == "a/b/c/d: more than 2 folders deep; move it up");
  CHECK(refused({{"0123456789"}}, limits) == "");
  CHECK(refused({{"0123456789/0123456789/23"}}, limits) == "");
  CHECK(refused({{"0123456789/0123456789/234"}}, limits) ==
        "entry 1: its path is longer than 24 bytes; shorten it");
  CHECK(refused({{"0123456789a"}}, limits) ==
        "0123456789a: its name is longer than 10 bytes; shorten it");
  CHECK(refused({{"a", std::string(600, 'x')}, {"b", std::string(400, 'x')}}, limits) == "");
  CHECK(refused({{"a", std::string(600, 'x')}, {"b", std::string(401, 'x')}}, limits) ==
        "b: with it the files are larger than 1000 bytes; hand in less, and have prepare compute "
        "what can be computed");
  // What a header claims is enough.
  const TempDir folder;
  CHECK(unpacked(folder, tar_header({"huge"}, std::uint64_t{1} << 32), "a.tar", limits)
            .starts_with("huge: with it the files are larger than 1000 bytes; "));
}

TEST_CASE("archive: bombs stop at the ratio, whatever is claimed") {
  const TempDir folder;
  const std::string bomb = zstd(tar({{"fine", "x"}, {"bomb", std::string(64 << 20, '\0')}}));
  REQUIRE(bomb.size() < 64 << 10);
  CHECK(unpacked(folder, bomb, "a.tar.zst") ==
        "bomb: with it the files are more than 200 times as large as the archive; leave it "
        "out, or hand in a .tar, which is not compressed");
  // Below a MiB nothing is a bomb.
  CHECK(unpacked(folder, zstd(tar({{"zeros", std::string(1 << 20, '\0')}})), "a.tar.zst") == "");
  for (const std::string& twice : {zstd(zstd(tar({{"a"}}))), gzip(zstd(tar({{"a"}})))}) {
    CHECK(unpacked(folder, twice, "a.tar.zst")
              .ends_with("(compressed more than once); make the archive anew"));
  }
}

TEST_CASE("archive: damaged, cut, empty and other files") {
  const TempDir folder;
  const std::string good = zstd(tar({{"a", std::string(5000, 'x')}, {"b", "y"}}));
  CHECK(unpacked(folder, good, "a.tar.zst") == "");
  for (const std::size_t size : {std::size_t{1}, good.size() / 2, good.size() - 1}) {
    CAPTURE(size);
    CHECK(unpacked(folder, good.substr(0, size), "a.tar.zst").find("damaged, or no tar") !=
          std::string::npos);
  }
  CHECK(unpacked(folder, "print('not an archive')\n", "a.zip").starts_with("damaged, or no tar"));
  CHECK(unpacked(folder, tar({}), "a.tar") == kNoFiles);
  CHECK(unpacked(folder, tar({{"a", "", '5'}}), "a.tar") == kNoFiles);
  std::string wrong_sum = tar({{"a"}});
  wrong_sum[0] = 'b';
  CHECK(unpacked(folder, wrong_sum, "a.tar").starts_with("damaged, or no tar"));
}

namespace {

// Of what is refused, without what to do.
std::string zip_message(const TempDir& folder, const std::string& bytes) {
  std::string message = unpacked(folder, bytes, "a.zip");
  const std::size_t end = message.find("; make the archive anew");
  CHECK((message.empty() || message == kNoFiles) == (end == message.npos));
  return message.substr(0, end);
}

// Each cut is refused with a reason, each changed byte too, or it changes no file.
void check_cuts_and_changes(const std::string& good, const std::string& name) {
  const TempDir folder;
  const auto files = [&] {
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& item : fs::recursive_directory_iterator(folder.path() / "to")) {
      if (item.is_regular_file()) found.emplace_back(item.path(), read_file(item.path()));
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  REQUIRE(unpacked(folder, good, name) == "");
  const auto right = files();
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    const std::string message = unpacked(folder, good.substr(0, size), name);
    CHECK(message != "");
    CHECK(message.find("no reason given") == message.npos);
  }
  std::string changed = good;
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char flip : {'\x01', '\x10', '\x80', '\xff'}) {
      CAPTURE(at);
      changed[at] = static_cast<char>(good[at] ^ flip);
      const std::string message = unpacked(folder, changed, name);
      CHECK(message.find("no reason given") == message.npos);
      if (message != "") {
        ++refused;
      } else {  // a bit that the format has no use for
        CHECK(files() == right);
      }
    }
    changed[at] = good[at];
  }
  CHECK(refused > 2 * static_cast<int>(good.size()));
  for (const std::string& more :
       {std::string("more"), std::string(1, '\0'), std::string(512, 'x')}) {
    CHECK(unpacked(folder, good + more, name) != "");
  }
}

}  // namespace

TEST_CASE("archive: no cut and no changed byte of a package gives other files") {
  check_cuts_and_changes(make_archive({{"p/TASK.md", "write\n"},
                                       {"p/bin/kjudge",
                                        "\x7f"
                                        "ELF, a program",
                                        true},
                                       {"p/a", ""}}),
                         "p.tar.zst");
}

TEST_CASE("archive: a tar that is cut between its files is not whole") {
  const TempDir folder;
  const std::string whole = tar({{"a"}, {"b"}});
  REQUIRE(whole.size() == 6 * 512);
  CHECK(unpacked(folder, whole, "a.tar") == "");
  for (const std::size_t size : {1024u, 1025u, 2048u, 2560u, 3071u}) {
    CAPTURE(size);
    CHECK(unpacked(folder, whole.substr(0, size), "a.tar") != "");
    CHECK(unpacked(folder, gzip(whole.substr(0, size)), "a.tar.gz") != "");
  }
}

TEST_CASE("archive: no cut and no changed byte of a tar.gz gives other files") {
  check_cuts_and_changes(gzip(tar({{"TASK.md", "write\n"}, {"sub/a", "a program"}})), "a.tar.gz");
}

TEST_CASE("archive: no cut of a zip gives other files, and its names are those it lists") {
  const std::string good = zip({{"TASK.md", "write\n"}, {"sub/a", "a program"}});
  check_cuts_and_changes(good, "a.zip");
  const TempDir folder;
  const auto message = [&](const std::string& bytes) { return zip_message(folder, bytes); };
  CHECK(message(zip({{"a"}, {"b"}}, "a comment")) == "");
  CHECK(message(zip({{"a"}, {"b", "x", "c"}})) ==
        "damaged (an entry has another name in its central directory)");
  CHECK(message(zip({{"a", "x", ""}, {"b"}})) == "damaged (bytes before its first entry)");
  CHECK(message(good.substr(0, good.find("PK\x01\x02"))) ==
        "damaged (no central directory at its end)");
  CHECK(message(good + "x") == "damaged (bytes after its central directory)");
  CHECK(unpacked(folder, "x" + good, "a.zip").starts_with("damaged, or no tar"));
  CHECK(message(zip({})) == kNoFiles);
  std::string one_less = good;
  one_less[good.size() - 14] = one_less[good.size() - 12] = 1;
  CHECK(message(one_less) == "damaged (its central directory has more entries than it says)");
  std::string one_more = good;
  one_more[good.size() - 14] = one_more[good.size() - 12] = 3;
  CHECK(message(one_more) == "damaged (its central directory has 2 entries, not 3)");
  std::string same_place = good;
  const std::size_t offset = good.rfind("PK\x01\x02") + 42;
  same_place.replace(offset, 4, little(0, 4));
  CHECK(message(same_place) == "damaged (two entries at the same place)");
}

TEST_CASE("archive: a zip's entry that its central directory leaves out is not passed over") {
  const TempDir folder;
  const auto message = [&](const std::string& bytes) { return zip_message(folder, bytes); };
  CHECK(message(zip({{"a"}, {"evil.py", "x", ""}, {"b"}})) ==
        "damaged (its central directory leaves out the entry evil.py)");
  CHECK(message(zip({{"a"}, {"evil.py", "x", ""}})) ==
        "damaged (its central directory leaves out the entry evil.py)");
  CHECK(message(zip({{"a"}, {"\xe2\x80\xae.py", "x", ""}})) ==
        "damaged (its central directory leaves out the entry at byte 32)");
  const std::string good = zip({{"a"}, {"b"}});
  const std::size_t second = good.find("PK\x03\x04", 1);
  for (const bool between : {true, false}) {  // of the entries; before the directory
    CAPTURE(between);
    std::string gap = good;
    gap.insert(between ? second : good.find("PK\x01\x02"), "bytes");
    if (between) gap.replace(gap.rfind("PK\x01\x02") + 42, 4, little(second + 5, 4));
    gap.replace(gap.size() - 6, 4, little(good.find("PK\x01\x02") + 5, 4));
    CHECK(message(gap) == cat("damaged (bytes ", between ? "32 to 37" : "64 to 69",
                              " belong to no entry of its central directory)"));
  }
}

TEST_CASE("archive: a zip's entry that is marked encrypted in one place alone is refused") {
  const TempDir folder;
  const std::string encrypted = "b: encrypted; make the archive without a password";
  for (const unsigned flag : {1u << 0, 1u << 6, 1u << 13}) {
    CAPTURE(flag);
    CHECK(unpacked(folder, zip({{"a"}, {"b", "x", "b", 0, flag}}), "a.zip") == encrypted);
    CHECK(unpacked(folder, zip({{"a"}, {"b", "x", "b", flag, 0}}), "a.zip") == encrypted);
    CHECK(unpacked(folder, zip({{"a"}, {"b", "x", "b", flag}}), "a.zip") == encrypted);
  }
  CHECK(unpacked(folder, zip({{"a"}, {"b", "x", "b", 1 << 11}}), "a.zip") == "");  // UTF-8
}

TEST_CASE("archive: a zip's central directory is read into memory within limits alone") {
  const TempDir folder;
  std::vector<ZipEntry> many;
  for (int i = 0; i < 4; ++i) many.push_back({cat("f", i)});
  ArchiveLimits limits;
  limits.names.count = 4;
  CHECK(unpacked(folder, zip(many), "a.zip", limits) == "");
  many.push_back({"f4"});
  CHECK(unpacked(folder, zip(many), "a.zip", limits) ==
        "f4: more than 4 files and folders; hand in fewer");
  limits.left_out_count = 2;
  many.push_back({".x"});
  many.push_back({".y"});
  CHECK(unpacked(folder, zip(many), "a.zip", limits) ==
        "more than 6 files and folders; hand in fewer");
  std::string large = zip({{"a"}});
  const std::size_t end = large.size() - 22, extra = 60'000;
  large.insert(end, extra, 'x');
  large.replace(large.rfind("PK\x01\x02") + 30, 2, little(extra, 2));
  large.replace(large.size() - 10, 4, little(46 + 1 + extra, 4));
  CHECK(zip_message(folder, large) ==
        "damaged (its central directory is larger than its entries need)");
}

TEST_CASE("archive: what kjudge reads no archive of is called by its name, with what to do") {
  const TempDir folder;
  const std::string rest(1000, 'x');
  for (const auto& [bytes, name] :
       {std::pair{"\xfd\x37zXZ", "an xz"}, std::pair{"BZh9", "a bzip2"},
        std::pair{"7z\xbc\xaf\x27\x1c", "a 7z"}, std::pair{"Rar!\x1a\x07", "a RAR"}}) {
    CHECK(unpacked(folder, bytes + rest, "a.tar") ==
          cat(name, " file, whatever its name; make a tar, tar.gz, tar.zst or zip in its place"));
  }
  CHECK(unpacked(folder, tar({{"BZh.py"}}), "a.tar") == "");
  CHECK(unpacked(folder, tar({{"BZh.py"}, {"BZh.py"}}), "a.tar") ==
        "BZh.py: the same name twice; keep one of them");
  CHECK(unpacked(folder, zip({{"a"}, {"s\\b"}}), "a.zip") ==
        "s\\b: a backslash in its name; rename it, or make the archive with a program that writes "
        "folders with \"/\"");
  std::string parts = zip({{"a"}});
  parts[parts.size() - 18] = 1;
  CHECK(unpacked(folder, parts, "a.zip") == "one of several parts of a zip; make it in one part");
  std::string large = zip({{"a"}});
  large.replace(large.size() - 6, 4, std::string(4, '\xff'));
  CHECK(unpacked(folder, large, "a.zip") ==
        "a zip64, for more than 4 GiB or 65,534 entries; make a tar.gz in its place");
  std::string wide = zstd(tar({{"a"}}));
  wide = wide.substr(0, 4) + std::string("\x00\xa0", 2) + std::string(10, '\0');  // of 1 GiB
  CHECK(unpacked(folder, wide, "a.tar.zst").find("compress without --long and --ultra") !=
        std::string::npos);
}

TEST_CASE("archive: a zip with its sizes after the data, as a pipe gets it") {
  const TempDir folder;
  for (const std::string mark : {"PK\x07\x08", ""}) {
    for (const int size : {4, 8}) {
      CAPTURE(size);
      std::string piped = zip({{"a", "one"}, {"b", "two"}});
      const std::size_t second = piped.find("PK\x03\x04", 1), third = piped.find("PK\x01\x02");
      const auto descriptor = [&](std::size_t at) {
        return mark + piped.substr(at + 14, 4) + little(3, size) + little(3, size);
      };
      const std::string after_a = descriptor(0), after_b = descriptor(second);
      for (const std::size_t at : {std::size_t{0}, second}) {
        piped.replace(at + 6, 2, little(8, 2));
        piped.replace(at + 14, 12, std::string(12, '\0'));
      }
      for (std::size_t at = third; at != piped.npos; at = piped.find("PK\x01\x02", at + 1)) {
        piped.replace(at + 8, 2, little(8, 2));
      }
      piped.insert(third, after_b);
      piped.insert(second, after_a);
      piped.replace(piped.rfind("PK\x01\x02") + 42, 4, little(second + after_a.size(), 4));
      piped.replace(piped.size() - 6, 4, little(third + after_a.size() + after_b.size(), 4));
      CHECK(unpacked(folder, piped, "a.zip") == "");
      CHECK(read_file(folder.path() / "to/b") == "two");
      piped.insert(second + after_a.size(), "x");
      piped.replace(piped.rfind("PK\x01\x02") + 42, 4, little(second + after_a.size() + 1, 4));
      piped.replace(piped.size() - 6, 4, little(third + after_a.size() + after_b.size() + 1, 4));
      CHECK(zip_message(folder, piped).ends_with("belong to no entry of its central directory)"));
    }
  }
}

TEST_CASE("archive: a gzip or zstd in several parts is one") {
  const TempDir folder;
  const std::string whole = tar({{"a", std::string(200'000, 'x')}, {"b", "y"}});
  for (const auto& compressed : {gzip, zstd}) {
    CHECK(unpacked(folder, compressed(whole.substr(0, 700)) + compressed(whole.substr(700)),
                   "a.tar.gz") == "");
    CHECK(read_file(folder.path() / "to/a") == std::string(200'000, 'x'));
    CHECK(read_file(folder.path() / "to/b") == "y");
  }
}

TEST_CASE("archive: zeros after a tar do not keep the reader for ever") {
  const TempDir folder;
  ArchiveLimits limits;
  limits.bytes = 1 << 20;
  limits.names.count = 10;
  limits.left_out_bytes = limits.left_out_count = 0;
  const std::string few = tar({{"a"}}) + std::string(1 << 20, '\0');
  const std::string many = tar({{"a"}}) + std::string(4 << 20, '\0');
  for (const auto& compressed : {gzip, zstd}) {
    CHECK(unpacked(folder, compressed(few), "a.tar.gz", limits) == "");
    CHECK(unpacked(folder, compressed(many), "a.tar.gz", limits)
              .ends_with("(it holds more than its files may); make the archive anew"));
  }
}

TEST_CASE("archive: what is there is not written into") {
  const TempDir folder;
  write_file_atomically(folder.path() / "a.tar", tar({{"a"}}));
  fs::create_directory(folder.path() / "to");
  CHECK_THROWS_AS(unpack_archive(folder.path() / "a.tar", folder.path() / "to", {}, Fault::usage),
                  Error);
  CHECK(fs::is_empty(folder.path() / "to"));
}

TEST_CASE("archive: what is made reads back, the same bytes each time") {
  const std::string long_name = std::string(90, 'd') + "/" + std::string(90, 'e') + "/f";
  const std::vector<ArchiveFile> files = {
      {"b/run", "#!/bin/sh\n", true}, {"a", ""}, {long_name, "z"}};
  const std::vector<ArchiveFile> shuffled = {files[2], files[0], files[1]};
  const std::string bytes = make_archive(files);
  CHECK(make_archive(shuffled) == bytes);
  const TempDir folder;
  CHECK(unpacked(folder, bytes, "a.tar.zst") == "");
  const fs::path to = folder.path() / "to";
  CHECK(read_file(to / "b/run") == "#!/bin/sh\n");
  CHECK(read_file(to / "a") == "");
  CHECK(read_file(to / long_name) == "z");
  CHECK((fs::status(to / "b/run").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK((fs::status(to / "a").permissions() & fs::perms::owner_exec) == fs::perms::none);
  CHECK_THROWS_AS(make_archive({{std::string(300, 'x'), ""}}), Error);
}

TEST_CASE("archive: which names are archives'") {
  for (const char* name : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.zst", "a.zip"}) {
    CHECK(is_archive(fs::path("x.y") / name));
    CHECK(archive_stem(fs::path("x.y") / name) == "a");
  }
  for (const char* name : {"a.py", "a.gz", ".zip", "zip", "a.zip.py"})
    CHECK_FALSE(is_archive(name));
}

TEST_CASE("names that show as they are") {
  for (const char* name : {"a", "\xc3\xa4", "\xe5\x9b\xbe", "\xf0\x9f\x98\x80", "a b"}) {
    CHECK(printable_name(name));
  }
  // A control character, C1, overlong, surrogate, cut, beyond Unicode, right-to-left override.
  for (const char* name : {"\x1b[2J", "\xc2\x9b", "\xe0\x80\xaf", "\xed\xa0\x80", "\xc3",
                           "\xf4\x90\x80\x80", "\xe2\x80\xae"}) {
    CHECK_FALSE(printable_name(name));
  }
}
