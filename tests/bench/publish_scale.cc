// SPDX-License-Identifier: Apache-2.0
// How long it takes until what was judged is on its pages: bench_publish_scale RESULTS PAGES
// [times]. Each time another copy of submission 1 with its evaluation comes to RESULTS, and a
// publisher writes the pages that say something of it. The first of them is timed with all that a
// new process has to read; the best of the others is what a judge sees that goes on. Other work
// disturbs, so processor seconds are told too, of all threads. rank_scale.py makes RESULTS.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "file.h"
#include "store/numbered_folders.h"
#include "web/publisher.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

struct Times {
  double wall_s = 0, processor_s = 0;
};

Times now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
      seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

int add_copy(const fs::path& results) {
  const fs::path submissions = results / "submissions";
  const int number = numbered(submissions).back() + 1;
  fs::copy(submissions / "1", submissions / std::to_string(number), fs::copy_options::recursive);
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_publish_scale RESULTS PAGES [times]\n");
    return 2;
  }
  const ResultsDirectory results(argv[1]);
  const fs::path pages = argv[2];
  const int times = argc > 3 ? std::atoi(argv[3]) : 5;
  fs::create_directories(pages);
  // As if write_site() had been here: a hundred thousand pages are not what is timed.
  write_file_atomically(pages / ".kjudge-pages", "");
  const auto report = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };

  Times best{1e9, 1e9};
  int number = add_copy(results.path());
  const Times begin = now();
  Publisher publisher(results, pages, {}, report);
  publisher.judged(number);
  const Times first = now();
  for (int i = 0; i < times; ++i) {
    number = add_copy(results.path());
    const Times before = now();
    publisher.judged(number);
    const Times after = now();
    best = {std::min(best.wall_s, after.wall_s - before.wall_s),
            std::min(best.processor_s, after.processor_s - before.processor_s)};
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("new process   %.2f s, %.2f s of processors\n", first.wall_s - begin.wall_s,
              first.processor_s - begin.processor_s);
  std::printf("the next one  %.2f s, %.2f s of processors, at most %.0f MiB\n", best.wall_s,
              best.processor_s, static_cast<double>(usage.ru_maxrss) / 1024);
  return fs::exists(pages / "evaluation" / (std::to_string(number) + ".html")) ? 0 : 1;
}
