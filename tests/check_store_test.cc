// SPDX-License-Identifier: Apache-2.0
#include "store/check_store.h"

#include <doctest/doctest.h>

#include "error.h"
#include "file.h"
#include "store/results.h"

using namespace kjudge;
namespace fs = std::filesystem;

TEST_CASE("a blob that a judge at work removes is no damage, and ends no check") {
  const TempDir folder;
  ResultsDirectory results = ResultsDirectory::make(folder.path() / "results");
  write_file_atomically(folder.path() / "ada.py", "ada");
  results.add({folder.path() / "ada.py", "ada", "softmax", 1 << 20}, {});
  const fs::path blobs = results.path() / "blobs/sha256";
  int ticks = 0;
  const auto remove_blobs = [&] {
    // The first is of the submission, the next of its blob.
    if (++ticks != 2) return;
    for (const auto& item : fs::directory_iterator(blobs)) {
      for (const auto& blob : fs::directory_iterator(item)) fs::remove(blob);
    }
  };
  const StoreCheck check = check_store(results.path(), {remove_blobs, [](const fs::path&) {}});
  CHECK(ticks == 2);
  CHECK(check.findings.empty());
}
