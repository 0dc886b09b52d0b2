// SPDX-License-Identifier: Apache-2.0
#include "store/submission_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "archive.h"
#include "error.h"
#include "file.h"

using namespace kjudge;

namespace fs = std::filesystem;

TEST_CASE("submission files: a file becomes the entry of its kind") {
  const TempDir work("kjudge-test");
  for (const char* name : {"mine.py", "mine.cu"}) {
    const fs::path from = work.path() / name, to = work.path() / "copy";
    write_file_atomically(from, "text");
    copy_submission(from, to, 100);
    CHECK(entry_file(to) == (from.extension() == ".cu" ? "submission.cu" : "submission.py"));
    fs::remove_all(to);
  }
}

TEST_CASE("submission files: an archive of an unknown kind is not taken for Python") {
  const TempDir work("kjudge-test");
  for (const char* name : {"mine", "mine.ZIP", "mine.tar.xz", "mine.py.gz"}) {
    write_file_atomically(work.path() / name, "text");
    CHECK_THROWS_WITH_AS(copy_submission(work.path() / name, work.path() / "copy", 100),
                         doctest::Contains("expected a .py or .cu file, a folder, or an archive"),
                         Error);
  }
}

TEST_CASE("submission files: a folder needs an entry, and Python comes first") {
  const TempDir work("kjudge-test");
  const fs::path from = work.path() / "from";
  fs::create_directory(from);
  write_file_atomically(from / "kernel.cu", "text");
  CHECK(entry_file(from) == "");
  CHECK_THROWS_WITH_AS(copy_submission(from, work.path() / "a", 100),
                       "from: no submission.py or submission.cu at the root of the folder; name "
                       "the file so that has prepare and kernel_fn",
                       Error);
  write_file_atomically(from / "submission.cu", "text");
  CHECK(copy_submission(from, work.path() / "b", 100).count == 2);
  CHECK(entry_file(work.path() / "b") == "submission.cu");
  write_file_atomically(from / "submission.py", "text");
  CHECK(entry_file(from) == "submission.py");
  CHECK(entry_file(work.path() / "missing") == "");
}

TEST_CASE("submission files: setuid and setgid are refused of files, and no matter of folders") {
  const TempDir work("kjudge-test");
  const fs::path from = work.path() / "from";
  fs::create_directories(from / "shared");
  write_file_atomically(from / "submission.py", "text");
  write_file_atomically(from / "shared/a.sh", "text");
  REQUIRE(::chmod((from / "shared").c_str(), 03775) == 0);
  REQUIRE(::chmod((from / "shared/a.sh").c_str(), 01755) == 0);
  CHECK(copy_submission(from, work.path() / "a", 100).count == 2);
  for (const mode_t mode : {04755, 02755, 04644}) {
    REQUIRE(::chmod((from / "shared/a.sh").c_str(), mode) == 0);
    CHECK_THROWS_WITH_AS(copy_submission(from, work.path() / "b", 100),
                         "shared/a.sh: a setuid or setgid bit; take it away with chmod ug-s",
                         Error);
  }
}

TEST_CASE("submission files: a submission.py that is a folder, or lies deeper, is told as that") {
  const TempDir work("kjudge-test");
  const fs::path from = work.path() / "from";
  fs::create_directories(from / "submission.py");
  write_file_atomically(from / "submission.py/a.py", "text");
  CHECK_THROWS_WITH_AS(copy_submission(from, work.path() / "a", 100),
                       "from: submission.py is a folder; a file of that name is what is called",
                       Error);
  const fs::path deep = work.path() / "deep";
  fs::create_directories(deep / "src");
  write_file_atomically(deep / "src/submission.cu", "text");
  CHECK_THROWS_WITH_AS(copy_submission(deep, work.path() / "b", 100),
                       "deep: no submission.py or submission.cu at the root of the folder; hand in "
                       "the folder of src/submission.cu",
                       Error);
  write_file_atomically(work.path() / "mine.tar.zst", make_archive({{"a/b", "text"}, {"c", ""}}));
  CHECK_THROWS_WITH_AS(copy_submission(work.path() / "mine.tar.zst", work.path() / "c", 100),
                       doctest::Contains("mine.tar.zst: no submission.py"), Error);
}
