// SPDX-License-Identifier: Apache-2.0
#include "judge/profile.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "error.h"
#include "file.h"
#include "json_faults.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

using Rows = std::vector<std::vector<std::string>>;

// As ncu 2025.3 prints its raw page, with two kernels and a few of their metrics.
constexpr const char* kRaw =
    "==PROF== Connected to process 4711 (/usr/bin/kjudge)\n"
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\","
    "\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"device__attribute_display_name\","
    "\"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed\","
    "\"gpu__time_duration.sum\",\"launch__registers_per_thread\","
    "\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"smsp__pcsamp_sample_buffer_full\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"block\",\"block\",\"\",\"\",\"\",\"%\",\"ns\","
    "\"register/thread\",\"%\",\"\"\n"
    "\"0\",\"4711\",\"kjudge\",\"127.0.0.1\",\"void f<4, (bool)1>(float *, "
    "\"\"x\"\")\",\"1\",\"7\","
    "\"(128, 1, 1)\",\"(64, 1, 1)\",\"0\",\"9.0\",\"NVIDIA H200\",\"81.26\",\"12,345.5\",\"32\","
    "\"7.5\",\"\"\n"
    "\"1\",\"4711\",\"kjudge\",\"127.0.0.1\",\"softmax\",\"1\",\"7\",\"(1, 1, 1)\",\"(1, 1, 1)\","
    "\"0\",\"9.0\",\"NVIDIA H200\",\"nan\",\"1824\",\"255\",\"0.01\",\"0\"\n";

// An ncu that notes how it was called and runs what it should profile.
class FakeNcu {
 public:
  explicit FakeNcu(const std::string& csv = kRaw, const std::string& profiling = "") {
    write_file_atomically(folder_.path() / "raw.csv", csv);
    write_file_atomically(program(), cat(R"(#!/bin/sh
cd ')",
                                         folder_.path().string(), R"('
echo "$LC_ALL $*" >> calls
case "$*" in
*--version*) echo 'NVIDIA (R) Nsight Compute'; echo 'Version 2025.3.1.0 (build 1) (release)'; exit;;
*--import*) cat raw.csv; exit;;
esac
)",
                                         profiling, R"(
while [ "$1" != --target-processes ]; do
  [ "$1" = --export ] && echo report > "$2"
  shift
done
shift 2
"$@"
)"));
    fs::permissions(program(), fs::perms::owner_all);
  }

  fs::path program() const { return folder_.path() / "ncu"; }
  fs::path folder() const { return folder_.path(); }
  std::string calls() const { return read_file(folder_.path() / "calls"); }
  NcuRun run() const {
    NcuRun run;
    run.ncu = program();
    run.set = "full";
    run.command = {"/bin/sh", "-c", "echo profiled > ran"};
    return run;
  }

 private:
  TempDir folder_{"kjudge-profile-test"};
};

std::string failure_of(const FakeNcu& ncu) {
  try {
    run_ncu(ncu.run());
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::device);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("csv: commas, quotes and line ends within quotes; empty fields; both line ends") {
  CHECK(parse_csv("") == Rows{});
  CHECK(parse_csv("a,b\nc,d") == Rows{{"a", "b"}, {"c", "d"}});
  CHECK(parse_csv("a,b\r\nc,\r\n") == Rows{{"a", "b"}, {"c", ""}});
  CHECK(parse_csv("\"f(int, float)\",\"say \"\"so\"\"\",\"two\nlines\"\n") ==
        Rows{{"f(int, float)", "say \"so\"", "two\nlines"}});
  CHECK(parse_csv(",\"\",\n\n,") == Rows{{"", "", ""}, {""}, {"", ""}});
  CHECK(parse_csv("5\" disk,\"a\"b") == Rows{{"5\" disk", "ab"}});
  CHECK_THROWS_WITH_AS(parse_csv("a,\"b\nc"), "csv: a quote is not closed", Error);
  CHECK_THROWS_AS(parse_csv("\""), Error);
}

TEST_CASE("ncu's raw page: every metric of every kernel, numbers as numbers") {
  const auto kernels = kernels_from_csv(kRaw);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name == "void f<4, (bool)1>(float *, \"x\")");
  CHECK(kernels[0].grid == "(64, 1, 1)");
  CHECK(kernels[0].block == "(128, 1, 1)");
  REQUIRE(kernels[0].metrics.size() == 5);  // the empty one is none
  CHECK(kernels[0].metrics[0].name == "device__attribute_display_name");
  CHECK(kernels[0].metrics[0].value == Json{std::string("NVIDIA H200")});
  CHECK(kernels[0].metrics[2].name == "gpu__time_duration.sum");
  CHECK(kernels[0].metrics[2].unit == "ns");
  CHECK(kernels[0].metrics[2].value == Json{12345.5});
  CHECK(kernels[0].metrics[3].value == Json{std::int64_t{32}});
  CHECK(kernels[1].metrics.size() == 6);
  CHECK(kernels[1].metrics[1].value == Json{std::string("nan")});  // JSON has no such number
}

TEST_CASE("ncu's raw page: what is none is refused") {
  for (const char* bad : {"", "==WARNING== No kernels were profiled.\n", "\"ID\",\"CC\"\n1,2\n",
                          "\"ID\",\"Kernel Name\"\n", "\"ID\",\"Kernel Name\"\n,\n1\n",
                          "\"ID\",\"Kernel Name\"\n,,\n"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(kernels_from_csv(bad), Error);
  }
  CHECK(kernels_from_csv("\"ID\",\"Kernel Name\"\n,\n").empty());
}

TEST_CASE("ncu's raw page: of a kernel's name that is megabytes its beginning is kept") {
  const std::string name(2 << 20, 'f');
  const auto kernels = kernels_from_csv(cat("\"ID\",\"Kernel Name\"\n,\n0,\"", name, "\"\n"));
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].name == name.substr(0, 4093) + "...");
}

TEST_CASE("ncu is run over the command, and its report read back") {
  const FakeNcu ncu;
  NcuRun run = ncu.run();
  run.report = ncu.folder() / "kept.ncu-rep";
  const Profile profile = run_ncu(run);
  CHECK(profile.ncu == "2025.3.1.0");
  CHECK(profile.set == "full");
  CHECK(profile.kernels.size() == 2);
  CHECK(read_file(ncu.folder() / "ran") == "profiled\n");
  CHECK(read_file(run.report) == "report\n");
  const std::string calls = ncu.calls();
  CHECK_MESSAGE(contains(calls,
                         "C --graph-profiling node --clock-control none --set full "
                         "--profile-from-start off --export "),
                calls);
  CHECK_MESSAGE(contains(calls, " --page raw --csv --print-units base\n"), calls);
}

TEST_CASE("a profile as JSON and as a table") {
  const FakeNcu ncu;
  Profile profile = run_ncu(ncu.run());
  profile.shape = "4096x1000";
  const std::string text = profile_to_json(profile);
  const Json json = parse_json(text, "p.json", Fault::bug);
  const auto& members = std::get<Json::Object>(json.value);
  CHECK(members.front().value == Json{std::string("kjudge-profile/1")});
  CHECK(contains(text, R"({"name": "gpu__time_duration.sum", "unit": "ns", "value": 12345.5})"));
  CHECK(profile_table(profile) ==
        "shape 4096x1000, ncu 2025.3.1.0, set full\n"
        "kernel                                  grid        block  duration  SM %  memory %  DRAM "
        "%\n"
        "void f<4, (bool)1>(float *, \"x\")  (64, 1, 1)  (128, 1, 1)  12.35 us   7.5      81.2     "
        "  -\n"
        "softmax                            (1, 1, 1)    (1, 1, 1)   1.82 us   0.0         -       "
        "-\n");
}

TEST_CASE("a table of a profile has no control characters of ncu's") {
  Profile profile;
  profile.ncu = "\x1b[31m";
  profile.kernels = {
      {"f\x1b", "\x1b(1)", "(8)\x1b", {{"gpu__time_duration.sum", "\x1b", Json{5.0}}}}};
  const std::string table = profile_table(profile);
  CHECK_MESSAGE(!contains(table, "\x1b"), table);
}

TEST_CASE("an ncu without rights to the counters: what to do") {
  const std::string text = failure_of(
      FakeNcu(kRaw, "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\n"));
  CHECK_MESSAGE(contains(text, "NVreg_RestrictProfilingToAdminUsers=0"), text);
  CHECK_MESSAGE(contains(text, "root"), text);
}

TEST_CASE("an ncu that fails is quoted") {
  std::string text = failure_of(FakeNcu(kRaw, "echo '==ERROR== unrecognised option'; exit 3"));
  CHECK_MESSAGE(contains(text, "exit status 3"), text);
  CHECK_MESSAGE(contains(text, "==ERROR== unrecognised option"), text);
  text = failure_of(FakeNcu(kRaw, "echo '==WARNING== No kernels were profiled.'; exit 0"));
  CHECK_MESSAGE(contains(text, "ncu wrote no report"), text);
  CHECK_MESSAGE(contains(text, "No kernels were profiled"), text);
  text = failure_of(FakeNcu("Kernel | Duration\nf | 1\n"));
  CHECK_MESSAGE(contains(text, "the output of ncu 2025.3.1.0 is not understood"), text);
  CHECK_MESSAGE(contains(text, "Kernel | Duration"), text);
  text = failure_of(FakeNcu(kRaw, "kill -9 $$"));
  CHECK_MESSAGE(contains(text, "killed by SIGKILL (Killed); ncu said nothing"), text);
  text = failure_of(FakeNcu("\"ID\",\"Kernel Name\"\n,\n"));
  CHECK_MESSAGE(contains(text, "ncu saw no kernel"), text);
}

TEST_CASE("ncu is looked for in PATH and CUDA_HOME, and missed with words on what to install") {
  const FakeNcu ncu;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", cat("/no/such/folder::", ncu.folder().string()).c_str(), 1);
  CHECK(find_ncu() == ncu.program());
  ::setenv("PATH", "", 1);
  fs::create_directory(ncu.folder() / "bin");
  fs::copy(ncu.program(), ncu.folder() / "bin" / "ncu");
  ::setenv("CUDA_HOME", ncu.folder().c_str(), 1);
  CHECK(find_ncu() == ncu.folder() / "bin" / "ncu");
  ::unsetenv("CUDA_HOME");
  if (!fs::exists("/usr/local/cuda/bin/ncu")) {
    try {
      find_ncu();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::device);
      CHECK(contains(error.what(), "apt-get install cuda-nsight-compute"));
    }
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("a profile is read back, and every fault in one names its field") {
  const std::string text =
      read_file(fs::path(KJUDGE_TEST_FOLDER) / "golden/profile-v1/profile.json");
  CHECK(profile_to_json(profile_from_json(text, "golden")) == text);
  const int tried = json_faults::try_every_fault(
      parse_json(text, "right", Fault::bug), profile_json_format().schema,
      [](const std::string& faulty) { profile_from_json(faulty, "p.json"); }, {.file = "p.json"});
  CHECK(tried > 50);
}
