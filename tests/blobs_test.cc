// SPDX-License-Identifier: Apache-2.0
#include "store/blobs.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "error.h"
#include "file.h"
#include "sha256.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

struct Folder {
  TempDir folder;
  fs::path write(const std::string& name, const std::string& bytes) const {
    const fs::path file = folder.path() / name;
    fs::create_directories(file.parent_path());
    write_file_atomically(file, bytes);
    return file;
  }
  void share(const fs::path& file, const std::string& bytes) const {
    share_file(folder.path(), file, sha256_hex(bytes));
  }
  fs::path blob(const std::string& bytes) const {
    const std::string sha256 = sha256_hex(bytes);
    return folder.path() / "blobs/sha256" / sha256.substr(0, 2) / sha256.substr(2);
  }
};

}  // namespace

TEST_CASE("files of one content become one") {
  const Folder folder;
  const fs::path first = folder.write("1/a", "same"), second = folder.write("2/b", "same");
  folder.share(first, "same");
  CHECK(fs::equivalent(first, folder.blob("same")));
  CHECK_FALSE(fs::equivalent(first, second));
  folder.share(second, "same");
  CHECK(fs::equivalent(first, second));
  CHECK(fs::hard_link_count(second) == 3);
  folder.share(second, "same");  // again
  CHECK(fs::hard_link_count(second) == 3);
  CHECK(read_file(second) == "same");
  CHECK(std::distance(fs::directory_iterator(folder.folder.path() / "2"), {}) == 1);
}

TEST_CASE("a damaged blob gets no more files") {
  const Folder folder;
  folder.share(folder.write("1", "content"), "content");
  for (const std::string damaged : {"Content", "con"}) {
    write_file_atomically(folder.blob("content"), damaged);
    const fs::path whole = folder.write("2", "content");
    folder.share(whole, "content");
    CHECK(read_file(whole) == "content");
    CHECK(fs::hard_link_count(whole) == 1);
  }
}

TEST_CASE("programs are files of their own, whatever folder they are in") {
  const Folder folder;
  const fs::path plain = folder.write("files/sub/plain", "text");
  const fs::path program = folder.write("files/sub/program", "text");
  REQUIRE(::chmod(program.c_str(), 0755) == 0);
  share_files(folder.folder.path(), folder.folder.path() / "files");
  CHECK(fs::hard_link_count(plain) == 2);
  CHECK(fs::hard_link_count(program) == 1);
}

TEST_CASE("a link or a copy of what is there") {
  const Folder folder;
  const fs::path file = folder.write("a", "text");
  CHECK(link_or_copy(file, folder.folder.path() / "b"));
  CHECK(read_file(folder.folder.path() / "b") == "text");
  CHECK_FALSE(link_or_copy(folder.folder.path() / "none", folder.folder.path() / "c"));
  CHECK_FALSE(fs::exists(folder.folder.path() / "c"));
  CHECK_THROWS_AS(link_or_copy(file, folder.folder.path() / "none" / "c"), Error);
}
