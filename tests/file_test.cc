// SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <vector>

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

// With TMPDIR a folder of its own.
class TemporaryPlace {
 public:
  TemporaryPlace() { ::setenv("TMPDIR", place_.path().c_str(), 1); }
  ~TemporaryPlace() {
    if (kept_) {
      ::setenv("TMPDIR", kept_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }
  fs::path make(const std::string& name) const {
    fs::create_directories(place_.path() / name / "inner");
    return place_.path() / name;
  }
  const fs::path& path() const { return place_.path(); }

 private:
  static std::optional<std::string> given() {
    const char* named = ::getenv("TMPDIR");
    return named != nullptr ? std::optional<std::string>(named) : std::nullopt;
  }
  const TempDir place_;
  const std::optional<std::string> kept_ = given();
};

TEST_CASE("what killed processes left in TMPDIR goes when the next one begins, and nothing else") {
  const TemporaryPlace place;
  const auto left = place.make("kjudge-x.tmp-abcdef");
  const auto of_another_command = place.make("kjudge-y.tmp-abcdef");
  const auto plain = place.make("kjudge.tmp-abcdef");
  // Names that people give, whose folders hold what they want to keep.
  const std::vector<fs::path> others = {
      place.make("kjudge.backup"),         place.make("kjudge-x.abcdef"),
      place.make("kjudge-x.tmp-abcdefg"),  place.make("kjudge-x.tmp-"),
      place.make("mykjudge-x.tmp-abcdef"), place.make(".tmp-abcdef")};
  fs::create_directory_symlink(others[0], place.path() / "kjudge-x.tmp-linked");
  const TempDir next("kjudge-x");
  for (const fs::path& path : {left, of_another_command, plain}) CHECK_FALSE(fs::exists(path));
  for (const fs::path& path : others) CHECK(fs::exists(path / "inner"));
}

TEST_CASE("a temporary directory that a living process holds is left alone") {
  const TemporaryPlace place;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const TempDir held("kjudge-x");
    const std::string path = held.path();
    const bool written =
        ::write(ready[1], path.data(), path.size()) == static_cast<ssize_t>(path.size());
    if (written) ::pause();
    ::_exit(1);
  }
  std::array<char, 4096> text{};
  const ssize_t size = ::read(ready[0], text.data(), text.size());
  for (const int fd : ready) ::close(fd);
  const fs::path held(
      std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
  {
    const TempDir first("kjudge-x"), second("kjudge-x");
    CHECK(fs::exists(held));
    CHECK(fs::exists(first.path()));
  }
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(fs::exists(held));
  const TempDir next("kjudge-y");
  CHECK_FALSE(fs::exists(held));
}

TEST_CASE("what has no end is not read, nor waited for") {
  const TempDir folder("kjudge-file-test");
  const std::string fifo = folder.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_file(fifo), doctest::Contains("not a regular file"));
  CHECK_THROWS_WITH(read_file("/dev/zero"), doctest::Contains("not a regular file"));
  CHECK(!read_file("/proc/self/stat").empty());
  // Although a name for it is no promise that it ends.
  CHECK_THROWS_WITH(read_file("/proc/self/fd/../../../dev/zero"),
                    doctest::Contains("not a regular file"));
}

TEST_CASE("a pipe that the process was given is read to its end") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string path = cat("/dev/fd/", ends[0]);
  const std::string bytes(300'000, 'x');  // more than a pipe holds
  std::thread writer([&] {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n =
          ::write(ends[1], bytes.data() + at, std::min<std::size_t>(7000, bytes.size() - at));
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    ::close(ends[1]);
  });
  CHECK(read_file(path) == bytes);
  writer.join();
  ::close(ends[0]);
}

TEST_CASE("a file over its limit is refused before it is read") {
  const TempDir folder("kjudge-file-test");
  const fs::path file = folder.path() / "large";
  write_file_atomically(file, "");
  fs::resize_file(file, std::uintmax_t{1} << 40);  // of holes
  CHECK_THROWS_WITH_AS(read_file(file, 1000), doctest::Contains("larger than 1000 bytes"), Error);
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
