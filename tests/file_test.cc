// SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "error.h"
#include "sha256.h"

using namespace kjudge;

namespace fs = std::filesystem;

TEST_CASE("a temporary directory and all in it goes with its owner") {
  fs::path path;
  {
    const TempDir made("kjudge-file-test");
    path = made.path();
    write_file_atomically(path / "file", "bytes");
    CHECK(path.is_absolute());
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("what a killed process left is removed, and nothing else") {
  const TempDir place;
  const auto make = [&](const char* name, std::chrono::hours age) {
    fs::create_directories(place.path() / name / "inner");
    fs::last_write_time(place.path() / name, fs::file_time_type::clock::now() - age);
    return place.path() / name;
  };
  using std::chrono::hours;
  const auto left = make("kjudge-x.abcdef", hours(1));
  const auto young = make("kjudge-x.ghijkl", hours(0));
  const auto other = make("kjudge-y.abcdef", hours(1));
  const auto longer = make("kjudge-x.abcdefg", hours(1));
  fs::create_directory_symlink(other, place.path() / "kjudge-x.linked");

  const char* before = ::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", place.path().c_str(), 1);
  {
    const TempDir living("kjudge-x");
    fs::last_write_time(living.path(), fs::file_time_type::clock::now() - hours(1));
    const TempDir next("kjudge-x");
    CHECK(fs::exists(living.path()));
  }
  if (before != nullptr) {
    ::setenv("TMPDIR", kept.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
  CHECK_FALSE(fs::exists(left));
  for (const fs::path& path : {young, other / "inner", longer}) CHECK(fs::exists(path));
}

TEST_CASE("what has no end is not read, nor waited for") {
  const TempDir folder("kjudge-file-test");
  const std::string fifo = folder.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_file(fifo), doctest::Contains("not a regular file"));
  CHECK_THROWS_WITH(read_file("/dev/zero"), doctest::Contains("not a regular file"));
  CHECK(!read_file("/proc/self/stat").empty());
}

TEST_CASE("the hash of a file is that of its bytes") {
  const TempDir place;
  const std::string bytes(3'000'001, 'x');  // more than one block
  write_file_atomically(place.path() / "file", bytes);
  const Fd fd(::open((place.path() / "file").c_str(), O_RDONLY));
  CHECK(sha256_of_file(fd.get(), "file") == sha256_hex(bytes));
  CHECK(sha256_of_file(fd.get(), "file") == sha256_hex(bytes));  // whatever the offset
  const Fd folder(::open("/", O_RDONLY));
  CHECK_THROWS_WITH_AS(sha256_of_file(folder.get(), "/"), doctest::Contains("/: "), Error);
}
