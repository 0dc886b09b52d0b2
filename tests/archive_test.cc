// SPDX-License-Identifier: Apache-2.0
// Hostile archives, made here byte by byte: each breaks one rule.
#include "archive.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zstd.h>

#include <array>
#include <cstring>

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

// Unpacked into `to`; the message without the archive's name, "": none.
std::string unpacked(const TempDir& folder, const std::string& bytes, const std::string& name,
                     const ArchiveLimits& limits = {}) {
  const fs::path file = folder.path() / name;
  fs::remove_all(folder.path() / "to");
  write_file_atomically(file, bytes);
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
  CHECK(refused({{"a//b"}}) == "a//b: its name has an empty part or \".\"");
  CHECK(refused({{"a/./b"}}) == "a/./b: its name has an empty part or \".\"");
  CHECK(refused({{"a"}, {"b\nc"}}) ==
        "entry 2: its name is not UTF-8 or holds control characters; rename it");
  CHECK(refused({{"b\xff"}}).starts_with("entry 1: its name is not UTF-8"));
  CHECK(refused({{"b\xc0\xaf"}}).starts_with("entry 1: its name is not UTF-8"));
  CHECK(refused({{"a\xe2\x80\xaeyp.x"}}).starts_with("entry 1: its name is not UTF-8 or holds"));
  CHECK(refused({{"a"}, {"a"}}) == "a: the same name twice");
  CHECK(refused({{"./a"}, {"a"}}) == "a: the same name twice");
  CHECK(refused({{"a"}, {"a/b"}}) == "a/b: a is a file and a folder");
  CHECK(refused({{"a/b"}, {"a"}}) == "a: the same name twice");
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
      "a: neither a file nor a folder; devices, FIFOs and sockets may not be handed in";
  for (const char type : {'3', '4', '6'}) CHECK(refused({{"a", "", type}}) == neither);
  for (const unsigned bit : {04000u, 02000u, 01000u}) {
    CHECK(refused({{"a", "x", '0', 0755 | bit}}) == "a: a setuid, setgid or sticky bit");
  }
  CHECK(refused({{"a", "", '5', 02755}, {"a/b"}}) == "a: a setuid, setgid or sticky bit");
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
  CHECK(refused({{"a"}, {"b/c"}, {"d"}}, limits) == "d: more than 3 files and folders");
  CHECK(refused({{"a/b/c"}}, limits) == "");
  CHECK(refused({{"a/b/c/d"}}, limits) == "a/b/c/d: more than 2 folders deep");
  CHECK(refused({{"0123456789"}}, limits) == "");
  CHECK(refused({{"0123456789/0123456789/23"}}, limits) == "");
  CHECK(refused({{"0123456789/0123456789/234"}}, limits) ==
        "entry 1: its path is longer than 24 bytes");
  CHECK(refused({{"0123456789a"}}, limits) == "0123456789a: its name is longer than 10 bytes");
  CHECK(refused({{"a", std::string(600, 'x')}, {"b", std::string(400, 'x')}}, limits) == "");
  CHECK(refused({{"a", std::string(600, 'x')}, {"b", std::string(401, 'x')}}, limits) ==
        "b: with it the files are larger than 1000 bytes");
  // What a header claims is enough.
  const TempDir folder;
  CHECK(unpacked(folder, tar_header({"huge"}, std::uint64_t{1} << 32), "a.tar", limits) ==
        "huge: with it the files are larger than 1000 bytes");
}

TEST_CASE("archive: bombs stop at the ratio, whatever is claimed") {
  const TempDir folder;
  const std::string bomb = zstd(tar({{"fine", "x"}, {"bomb", std::string(64 << 20, '\0')}}));
  REQUIRE(bomb.size() < 64 << 10);
  CHECK(unpacked(folder, bomb, "a.tar.zst") ==
        "bomb: with it the files are more than 200 times as large as the archive");
  // Below a MiB nothing is a bomb.
  CHECK(unpacked(folder, zstd(tar({{"zeros", std::string(1 << 20, '\0')}})), "a.tar.zst") == "");
  CHECK(unpacked(folder, zstd(zstd(tar({{"a"}}))), "a.tar.zst") == "compressed more than once");
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
  CHECK(unpacked(folder, tar({}), "a.tar") == "no files in it");
  CHECK(unpacked(folder, tar({{"a", "", '5'}}), "a.tar") == "no files in it");
  std::string wrong_sum = tar({{"a"}});
  wrong_sum[0] = 'b';
  CHECK(unpacked(folder, wrong_sum, "a.tar").starts_with("damaged, or no tar"));
}

TEST_CASE("archive: no cut and no changed byte of a package gives other files") {
  const TempDir folder;
  const std::string good = make_archive(
      {{"p/TASK.md", "write\n"}, {"p/bin/kjudge", "\x7f" "ELF, a program", true}, {"p/a", ""}});
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(unpacked(folder, good.substr(0, size), "p.tar.zst") != "");
  }
  std::string changed = good;
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char flip : {'\x01', '\x10', '\x80', '\xff'}) {
      CAPTURE(at);
      changed[at] = static_cast<char>(good[at] ^ flip);
      if (unpacked(folder, changed, "p.tar.zst") != "") {
        ++refused;
      } else {  // a bit that zstd has no use for
        CHECK(read_file(folder.path() / "to/p/TASK.md") == "write\n");
        CHECK(read_file(folder.path() / "to/p/bin/kjudge") == "\x7f" "ELF, a program");
        CHECK(read_file(folder.path() / "to/p/a") == "");
      }
    }
    changed[at] = good[at];
  }
  CHECK(refused > 3 * static_cast<int>(good.size()));
  CHECK(unpacked(folder, good + "more", "p.tar.zst") != "");
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
