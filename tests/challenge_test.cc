// SPDX-License-Identifier: Apache-2.0
#include "challenge/challenge.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "challenge/challenge_format.h"
#include "challenge/tensor_memory.h"
#include "challenge_folder.h"
#include "error.h"
#include "file.h"
#include "replay/evaluation.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

// Everything that a challenge says, a line each.
std::string everything(const Challenge& challenge) {
  std::ostringstream out;
  out.precision(17);
  const auto dims = [](const TensorSpec& spec) {
    std::string text;
    for (std::size_t i = 0; i < spec.dims.size(); ++i) {
      text += cat(i == 0 ? "" : ", ", spec.dims[i]);
    }
    return cat(spec.name, " ", name(spec.dtype), " [", text, "]");
  };
  out << challenge.name << " version " << challenge.version << "\ntitle " << challenge.title
      << "\nauthor " << challenge.author << "\nbounty " << challenge.bounty << "\ntarget_ns "
      << challenge.target_ns.value_or(-1) << "\ncache "
      << (challenge.cache == CacheMode::hot ? "hot" : "cold") << "\nreference "
      << (challenge.reference == ReferenceMode::python ? "python" : "recorded") << "\n";
  for (const std::string& flag : challenge.compiler_flags) out << "compiler_flag " << flag << "\n";
  const ChallengeLimits& limits = challenge.limits;
  out << "limits build_s " << limits.build_s << " prepare_s " << limits.prepare_s << " capture_s "
      << limits.capture_s << " replay_s " << limits.replay_s << " memory_bytes "
      << limits.memory_bytes << " output_bytes " << limits.output_bytes << " submission_bytes "
      << limits.submission_bytes << "\nsha256 " << challenge.sha256 << "\n";
  for (const Shape& shape : challenge.shapes) {
    out << (shape.timed ? "shape " : "test ") << shape.name << " arch " << shape.arch << " dtype "
        << shape.dtype << " floor_ns " << shape.floor_ns.value_or(-1) << "\n";
    for (const auto& [dim, size] : shape.dims) out << "  dim " << dim << " " << size << "\n";
    for (const Scalar& scalar : shape.scalars) {
      out << "  scalar " << scalar.name << " kind " << scalar.value.index() << " ";
      std::visit([&](auto value) { out << value; }, scalar.value);
      out << "\n";
    }
    for (const InputSpec& input : shape.inputs) {
      out << "  " << (input.inout ? "inout " : "input ") << dims(input.tensor) << "\n";
    }
    for (const OutputSpec& output : shape.outputs) {
      out << "  output " << dims(output.tensor) << " expected " << name(output.expected_dtype)
          << (output.overflow == Overflow::saturate ? " saturate" : " infinity") << "\n";
      for (const Check& check : output.checks) {
        out << "    " << (check.kind == CheckKind::exact ? "exact" : "close") << " rtol "
            << check.rtol << " atol " << check.atol << " max_mismatched " << check.max_mismatched
            << " signed_zero " << check.signed_zero << "\n";
      }
    }
    for (const Regime& regime : shape.regimes) {
      out << "  regime " << regime.name << " pairs_per_round " << regime.pairs_per_round << "\n";
      for (const Generator& generator : regime.generators) {
        out << "    generator " << generator.kind << " " << generator.a << " " << generator.b
            << "\n";
      }
    }
  }
  return out.str();
}

}  // namespace

TEST_CASE("a shape's work and the devices' rates are read") {
  const Challenge challenge = Folder().read();
  CHECK_FALSE(challenge.shapes[0].work.has_value());
  const Shape& big = challenge.shapes[1];
  REQUIRE(big.work.has_value());
  CHECK(big.work->read_bytes == 33);
  CHECK(big.work->written_bytes == 70'000'000'000);
  CHECK(big.work->operations == 5);
  CHECK_FALSE(big.floor_ns.has_value());
  REQUIRE(challenge.rates.size() == 2);
  CHECK(challenge.rates[0].device == "H200");
  CHECK(challenge.rates[0].bytes_per_s == 4.8e12);
  REQUIRE(challenge.rates[0].operations_per_s.size() == 1);
  CHECK(challenge.rates[0].operations_per_s[0] == std::pair(std::string("float16"), 9.89e14));
  CHECK_FALSE(challenge.rates[1].bytes_per_s.has_value());
}

TEST_CASE("the golden challenge stays readable, and means what it meant") {
  const auto golden = fs::path(KJUDGE_TEST_FOLDER) / "golden" / "challenge-v1";
  const std::string text = everything(read_challenge(golden / "challenge"));
  // No released version may write it anew.
  if (std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr) {
    write_file_atomically(golden / "read.txt", text);
  }
  CHECK(text == read_file(golden / "read.txt"));
}

TEST_CASE("a challenge is read with every shape resolved") {
  const Challenge challenge = Folder().read();
  CHECK(challenge.name == "scaled-gather");
  CHECK(challenge.version == 3);
  CHECK(challenge.bounty == "a mug");
  CHECK(challenge.target_ns == 12500);
  CHECK(challenge.cache == CacheMode::hot);
  CHECK(challenge.compiler_flags == std::vector<std::string>{"-O3", "-ffast-math"});
  CHECK(challenge.limits.build_s == 60);
  CHECK(challenge.limits.prepare_s == 61);
  CHECK(challenge.limits.capture_s == 62);
  CHECK(challenge.limits.replay_s == 0.5);
  CHECK(challenge.limits.memory_bytes == 1 << 30);
  CHECK(challenge.limits.output_bytes == 1 << 16);
  CHECK(challenge.limits.submission_bytes == 1 << 20);
  CHECK(challenge.limits.bundle_bytes == 2 << 20);
  CHECK(challenge.gpus_per_evaluation == 2);
  REQUIRE(challenge.shapes.size() == 3);

  const Shape& small = challenge.shapes[0];
  CHECK(small.name == "10x20x5");
  CHECK(small.timed);
  CHECK(small.floor_ns == 1250);
  CHECK(small.dims.at("columns") == 20);
  REQUIRE(small.scalars.size() == 3);
  CHECK(std::get<double>(small.scalars[0].value) == 1.5);
  CHECK(std::get<std::int64_t>(small.scalars[1].value) == 3);
  CHECK(std::get<bool>(small.scalars[2].value));
  REQUIRE(small.inputs.size() == 3);
  CHECK(small.inputs[0].tensor.dims == std::vector<std::int64_t>{10, 20});
  CHECK(small.inputs[0].tensor.dtype == DType::float32);
  CHECK(small.inputs[1].inout);
  CHECK(small.inputs[2].tensor.dims == std::vector<std::int64_t>{1, 20});
  REQUIRE(small.regimes.size() == 2);
  CHECK(small.regimes[0].pairs_per_round + small.regimes[1].pairs_per_round == kPairsPerRound);
  CHECK(small.regimes[0].generators[0].kind == fill_normal);
  CHECK(small.regimes[0].generators[1].b == 9);
  CHECK(small.regimes[1].generators[0].kind == fill_uniform);
  CHECK(small.regimes[1].generators[0].a == -1000);
  CHECK(small.regimes[1].generators[1].kind == fill_integers);
  CHECK(small.regimes[1].generators[2].b == 3);
  REQUIRE(small.outputs.size() == 2);
  CHECK(small.outputs[0].expected_dtype == DType::float32);
  REQUIRE(small.outputs[0].checks.size() == 1);  // the other is for float16
  CHECK(small.outputs[0].checks[0].rtol == 0.001);
  CHECK(small.outputs[1].expected_dtype == DType::int64);
  REQUIRE(small.outputs[1].checks.size() == 1);
  CHECK(small.outputs[1].checks[0].kind == CheckKind::exact);

  const Shape& big = challenge.shapes[1];
  CHECK(big.name == "big");
  CHECK(big.dtype == "float16");
  CHECK(big.inputs[0].tensor.dtype == DType::float16);
  CHECK(big.outputs[0].checks.size() == 2);
  CHECK(big.outputs[0].checks[1].signed_zero);
  REQUIRE(big.regimes.size() == 1);
  CHECK(big.regimes[0].name == "only");

  CHECK(challenge.shapes[2].name == "test-1x1x1");
  CHECK(!challenge.shapes[2].timed);
}

TEST_CASE("a challenge needs little") {
  const Folder folder;
  folder.file("challenge.json", R"({
    "format": "kjudge-challenge/1", "name": "copy", "version": 1, "title": "Copy", "author": "Ada",
    "tensors": {"inputs": [{"name": "x", "dtype": "float32", "shape": ["n"]}],
                "outputs": [{"name": "y", "dtype": "float32", "shape": ["n"],
                             "checks": [{"kind": "exact"}]}]},
    "shapes": [{"arch": "sm_90", "dtype": "float32", "dims": {"n": 4096}}]})");
  const Challenge challenge = folder.read();
  REQUIRE(challenge.shapes.size() == 1);
  const Shape& shape = challenge.shapes[0];
  CHECK(shape.name == "4096");
  CHECK(challenge.cache == CacheMode::cold);
  CHECK(challenge.limits.replay_s == 10);
  CHECK(!challenge.target_ns.has_value());
  REQUIRE(shape.regimes.size() == 1);
  CHECK(shape.regimes[0].name == "nominal");
  CHECK(shape.regimes[0].pairs_per_round == kPairsPerRound);
  CHECK(shape.regimes[0].generators[0].kind == fill_normal);
  CHECK(shape.regimes[0].generators[0].b == 1);
  CHECK(shape.outputs[0].expected_dtype == DType::float64);
}

TEST_CASE("each limit has a default and a range, and the message says it") {
  const ChallengeLimits defaults;
  CHECK(defaults.build_s == 300);
  CHECK(defaults.prepare_s == 300);
  CHECK(defaults.capture_s == 120);
  CHECK(defaults.memory_bytes == 0);
  CHECK(defaults.output_bytes == 1048576);
  CHECK(defaults.submission_bytes == 16777216);
  CHECK(defaults.bundle_bytes == 17179869184);
  const auto limit = [](std::string_view field, std::string_view value) {
    const std::string text(kFull);
    const auto begin = text.find(cat("\"", field, "\": ")), end = text.find_first_of(",}", begin);
    return error_with(text.substr(begin, end - begin), cat("\"", field, "\": ", value));
  };
  for (const auto& [field, low, high] :
       {std::array{"build_s", "0.5", "86401"}, std::array{"prepare_s", "0.5", "86401"},
        std::array{"capture_s", "0.5", "86401"}, std::array{"replay_s", "0", "3601"},
        std::array{"memory_bytes", "-1", "1099511627777"},
        std::array{"output_bytes", "1023", "67108865"},
        std::array{"submission_bytes", "1023", "1073741825"},
        std::array{"bundle_bytes", "65535", "1099511627777"}}) {
    for (const char* value : {low, high}) {
      const std::string message = limit(field, value);
      CHECK_MESSAGE(message.starts_with(cat("challenge.json: limits.", field, ": expected ")),
                    message);
      CHECK_MESSAGE(message.find(value) != std::string::npos, message);
    }
  }
}

namespace {

// kFull with an input of every other generator.
std::string with_every_generator() {
  return with(R"("generator": {"kind": "constant", "value": 0.5}})",
              R"("generator": {"kind": "constant", "value": 0.5}},
      {"name": "mask", "dtype": "bool", "shape": ["rows"],
       "generator": {"kind": "bernoulli", "probability": 0.25, "value": 1}},
      {"name": "shuffle", "dtype": "int32", "shape": ["rows"], "generator": {"kind": "permutation"}},
      {"name": "lengths", "dtype": "int32", "shape": [4],
       "generator": {"kind": "lengths", "total": 64, "least": 1, "most": 40, "skew": 0.25}},
      {"name": "starts", "dtype": "int32", "shape": [5],
       "generator": {"kind": "offsets", "of": "lengths"}},
      {"name": "ends", "dtype": "int64", "shape": [5],
       "generator": {"kind": "offsets", "total": 100, "least": 2, "most": 90, "skew": 1}},
      {"name": "table", "dtype": "int32", "shape": [4, 4],
       "generator": {"kind": "block_table", "blocks": 16, "lengths": "lengths", "block_size": 16,
                     "unused": 0}},
      {"name": "label", "dtype": "float32", "shape": ["rows", 10],
       "generator": {"kind": "one_hot", "value": 2}},
      {"name": "popular", "dtype": "int64", "shape": [100],
       "generator": {"kind": "power_law", "low": 0, "high": 999, "exponent": 1.5,
                     "scattered": true}},
      {"name": "keys", "dtype": "int32", "shape": [50],
       "generator": {"kind": "sorted", "low": -5, "high": 100, "skew": 0.75}},
      {"name": "thin", "dtype": "float32", "shape": [8, 8],
       "generator": {"kind": "low_rank", "rank": 2, "deviation": 0.5}},
      {"name": "weight", "dtype": "int8", "shape": [4, 32],
       "generator": {"kind": "quantised", "block": 16, "power_of_two": true, "mean": 0.125,
                     "deviation": 2}},
      {"name": "weight_scale", "dtype": "float16", "shape": [4, 2],
       "generator": {"kind": "scales", "of": "weight"}},
      {"name": "own", "dtype": "int64", "shape": [3], "generator": {"kind": "python"}})");
}

}  // namespace

TEST_CASE("every field of challenge.json refuses every wrong kind, and names itself") {
  const Folder folder;
  folder.file("inputs.py", "");
  const Json right = parse_json(with_every_generator(), "kFull", Fault::bug);
  const int tried =
      json_faults::try_every_fault(right, challenge_table().schema(),
                                   [&](const std::string& faulty) {
                                     folder.file("challenge.json", faulty);
                                     folder.read();
                                   },
                                   {.file = (folder.path() / "challenge.json").string(),
                                    .needed = {"generator", "checks", "dims", "scalars", "of",
                                               "total", "lengths", "block_size"}});
  CHECK(tried > 1000);
}

TEST_CASE("a challenge.json cut or changed anywhere is refused, or another challenge") {
  const Folder folder;
  const auto read = [&](const std::string& text) {
    fs::remove(folder.path() / "challenge.json");  // writing over it would wait for the disk
    folder.file("challenge.json", text);
    const Challenge challenge = folder.read();
    CHECK(!challenge.shapes.empty());
  };
  const int others = json_faults::try_every_damage(std::string(kFull), Fault::package, read);
  CHECK(others > 100);  // in its title and numbers
}

TEST_CASE("what the fields say together is checked, with the place and what to do") {
  CHECK(error_with("\"columns\": 20, \"picked\"", "\"colums\": 20, \"picked\"") ==
        "challenge.json: tensors.inputs[0].shape[1]: shapes[0].dims has no \"columns\"");
  CHECK(error_with("\"rows\": 4096", "\"rows\": \"many\"") ==
        "challenge.json: shapes[1].dims.rows: expected an integer from 1 to 2^40, found \"many\"");
  CHECK(error_with("\"rows\": 4096", "\"rows\": 1099511627776") ==
        "challenge.json: tensors.inputs[0]: larger than 2^40 bytes with the dims of shapes[1]");
  CHECK(error_with("\"name\": \"bias\"", "\"name\": \"x\"") ==
        "challenge.json: tensors.inputs[2].name: the name \"x\" is taken by another input, output "
        "or scalar");
  CHECK(error_with("\"name\": \"order\"", "\"name\": \"lambda\"") ==
        "challenge.json: tensors.outputs[1].name: \"lambda\" is a word of Python; choose another "
        "name");
  CHECK(error_with("\"scale\": 1.5", "\"x\": 1.5").find("\"x\" is taken") != std::string::npos);
  CHECK(error_with("\"pairs_per_round\": 4", "\"pairs_per_round\": 3") ==
        "challenge.json: regimes: pairs_per_round of the regimes add up to 4; they must add up to "
        "5");
  CHECK(error_with("\"only\", \"pairs_per_round\": 5", "\"only\", \"pairs_per_round\": 2") ==
        "challenge.json: shapes[1].regimes: pairs_per_round of the regimes add up to 2; they must "
        "add up to 5");
  CHECK(error_with("\"name\": \"large\"", "\"name\": \"nominal\"") ==
        "challenge.json: regimes[1].name: the name \"nominal\" is taken");
  CHECK(error_with("{\"x\": {\"kind\": \"uniform\"", "{\"z\": {\"kind\": \"uniform\"") ==
        "challenge.json: regimes[1].generators.z: there is no input of that name");
  CHECK(error_with("\"scale\": 0.5, ", "") ==
        "challenge.json: shapes[1]: scalar \"scale\" of shapes[0] is missing; every shape and test "
        "gives it");
  CHECK(error_with("\"scale\": 0.5", "\"scale\": 1") ==
        "challenge.json: shapes[1].scalars.scale: has another type than in shapes[0]");
  CHECK(error_with("\"scale\": 0.5", "\"extra\": 1, \"scale\": 0.5") ==
        "challenge.json: shapes[1].scalars.extra: shapes[0] has no such scalar; every shape gives "
        "the same");
  CHECK(
      error_with("\"scalars\": {\"scale\": 1.0", "\"floor_us\": 3, \"scalars\": {\"scale\": 1.0") ==
      "challenge.json: tests[0].floor_us: a test is not timed and has no floor");
  CHECK(error_with("\"scalars\": {\"scale\": 1.0",
                   "\"operations\": 3, \"scalars\": {\"scale\": 1.0") ==
        "challenge.json: tests[0]: a test is not timed and has no floor to compute");
  CHECK(error_with("\"floor_us\": 1.25", "\"floor_us\": 1.25, \"read_bytes\": 4") ==
        "challenge.json: shapes[0].floor_us: is given, so no floor is computed; leave it out, or "
        "the shape's bytes and operations");
  CHECK(error_with("{\"float16\": 9.89e14}", "{\"float33\": 1}")
            .starts_with("challenge.json: rates[0].operations_per_s.float33: expected "));
  CHECK(error_with("\"dims\": {\"rows\": 1, ",
                   "\"name\": \"10x20x5\", \"dims\": {\"rows\":"
                   " 1, ") ==
        "challenge.json: tests[0]: the name \"10x20x5\" is taken by another shape or test; "
        "give \"name\"");
  CHECK(error_with("\"kind\": \"close\", \"rtol\": 0.001, \"atol\": 1e-6", "\"kind\": \"close\"") ==
        "challenge.json: tensors.outputs[0].checks[0]: neither \"rtol\" nor \"atol\" is above 0; "
        "use \"exact\" for equal values");
  CHECK(error_with("\"kind\": \"close\", \"rtol\"",
                   "\"kind\": \"close\", \"dtype\": \"float16\", "
                   "\"rtol\"")
            .starts_with("challenge.json: tensors.outputs[0].checks: no check applies to float32 "
                         "(shapes[0]); give at least one"));
  CHECK(error_with("\"expected_dtype\": \"float32\"", "\"expected_dtype\": \"int32\"") ==
        "challenge.json: tensors.outputs[0].expected_dtype: int32 cannot stand for an output of "
        "float32 (shapes[0]): both are floating or neither is");
  CHECK(error_with("\"overflow\": \"infinity\"", "\"overflow\": \"saturate\"") ==
        "challenge.json: tensors.outputs[0].overflow: only 16-, 8- and 4-bit floating types "
        "saturate, not float32 (shapes[0])");
}

TEST_CASE("a name tells the dtype where the arch has several") {
  const Folder folder;
  folder.file("challenge.json",
              with("\"name\": \"big\", \"arch\": \"sm_*\"", "\"arch\": \"x86_64\""));
  const Challenge challenge = folder.read();
  CHECK(challenge.shapes[0].name == "10x20x5-float32");
  CHECK(challenge.shapes[1].name == "4096x1000x7-float16");
  CHECK(challenge.shapes[2].name == "test-1x1x1-float32");
}

TEST_CASE("names are unique where one arch selects both") {
  const auto second_arch = [](std::string_view arch) {
    // As the first shape is called when its arch has a second dtype.
    const std::string_view name = arch == "x86_64" ? "10x20x5-float32" : "10x20x5";
    return error_with("\"name\": \"big\", \"arch\": \"sm_*\"",
                      cat("\"name\": \"", name, "\", \"arch\": \"", arch, "\""));
  };
  CHECK(second_arch("sm_*") == "no error");
  CHECK(second_arch("sm_90") == "no error");
  CHECK(second_arch("x86_64").find("is taken") != std::string::npos);
}

TEST_CASE("for_arch keeps what that arch runs") {
  const Challenge challenge = Folder().read();
  const Challenge host = for_arch(challenge, "x86_64");
  CHECK(host.shapes.size() == 2);
  CHECK(host.sha256 == challenge.sha256);
  CHECK(for_arch(challenge, "sm_90").shapes.size() == 1);
  CHECK(json_faults::message_of([&] { for_arch(challenge, "aarch64"); }) ==
        "challenge scaled-gather has no shape for aarch64; it has shapes for sm_*, x86_64");
}

TEST_CASE("files that a challenge needs") {
  for (const char* name :
       {"TASK.md", "reference.py", "baseline.py", "submission.py", "challenge.json"}) {
    const Folder folder;
    fs::remove(folder.path() / name);
    CHECK(folder.error().starts_with(cat(name, ": no such file; ")));
    fs::create_directory(folder.path() / name);
    CHECK(folder.error().starts_with(cat(name, ": is a folder, expected a file; ")));
    fs::remove(folder.path() / name);
    REQUIRE(::mkfifo((folder.path() / name).c_str(), 0600) == 0);
    CHECK(folder.error().starts_with(cat(name, ": neither a file nor a folder; ")));
    fs::remove(folder.path() / name);
    fs::create_symlink("nowhere", folder.path() / name);
    CHECK(folder.error().starts_with(cat(name, ": is a link; copy the file into the challenge; ")));
  }
  const Folder folder;
  folder.file("challenge.json", "{");
  CHECK(folder.error().starts_with("challenge.json: parse error at line 1, column 2"));
  fs::create_symlink("TASK.md", folder.path() / "link");
  folder.file("challenge.json", kFull);
  CHECK(folder.error() == "link: not a regular file; copy it into the challenge");
}

TEST_CASE("a challenge.json or a file of a challenge that is too large is its author's fault") {
  const auto enlarged = [](const char* name, std::uintmax_t bytes) {
    const Folder folder;
    fs::resize_file(folder.path() / name, bytes);
    try {
      folder.read();
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::package);
    }
    return folder.error();
  };
  const std::string what_to_do = "; make what is large when it is needed, in prepare or inputs.py";
  CHECK(enlarged("challenge.json", 200 << 20) ==
        "challenge.json: larger than 16777216 bytes" + what_to_do);
  CHECK(enlarged("TASK.md", kMostFileBytes + 1) ==
        "TASK.md: larger than 268435456 bytes" + what_to_do);
}

TEST_CASE("a challenge whose limits.memory_bytes does not hold its own tensors is refused") {
  const Folder folder;
  const TensorMemory needed = tensor_memory(folder.read());
  CHECK(needed.arch == "x86_64");
  // Two shapes with 3 inputs and 2 outputs each, none above 2 MiB.
  CHECK(needed.bytes == 10 * (2u << 20));
  const auto limited = [&](std::uint64_t bytes) {
    return error_with("\"memory_bytes\": 1073741824", cat("\"memory_bytes\": ", bytes));
  };
  CHECK(limited(0) == "no error");
  CHECK(limited(needed.bytes) == "no error");
  CHECK(limited(needed.bytes - 1) ==
        "challenge.json: limits.memory_bytes: 20971519 is less than the tensors of its shapes for "
        "x86_64 take, 20971520 bytes; give that and what submissions may allocate");
}

TEST_CASE("the hash covers names and contents of all files but hidden ones and Python's cache") {
  const Folder folder;
  const std::string before = folder.read().sha256;
  CHECK(before.size() == 64);
  folder.file("__pycache__/reference.pyc", "x");
  folder.file(".git/config", "x");
  folder.file(".hidden", "x");
  CHECK(folder.read().sha256 == before);
  folder.file("data/table.bin", "1");
  const std::string with_table = folder.read().sha256;
  CHECK(with_table != before);
  folder.file("data/table.bin", "2");
  CHECK(folder.read().sha256 != with_table);
  fs::rename(folder.path() / "data" / "table.bin", folder.path() / "data" / "elbat.bin");
  folder.file("data/elbat.bin", "1");
  CHECK(folder.read().sha256 != with_table);
  fs::remove_all(folder.path() / "data");
  CHECK(folder.read().sha256 == before);
}

TEST_CASE("what a challenge hides is no part of it") {
  const Folder folder;
  folder.file("challenge.json", with("[\"notes\"]", "[\"notes\", \"a/fast.py\"]"));
  fs::create_directory(folder.path() / "a");
  folder.file("a/table", "1");
  const std::string before = folder.read().sha256;
  folder.file("a/fast.py", "2");
  fs::create_directory(folder.path() / "notes");
  folder.file("notes/todo", "3");
  fs::create_symlink("/etc", folder.path() / "notes" / "link");
  const Challenge challenge = folder.read();
  CHECK(challenge.sha256 == before);
  const TempDir to;
  copy_challenge(challenge, to.path() / "copy");
  CHECK(read_file(to.path() / "copy/a/table") == "1");
  CHECK_FALSE(fs::exists(to.path() / "copy/a/fast.py"));
  CHECK_FALSE(fs::exists(to.path() / "copy/notes"));
  const Folder needed;
  for (const char* name : {"baseline.py", "challenge.json"}) {
    needed.file("challenge.json", with("[\"notes\"]", cat("[\"", name, "\"]")));
    CHECK(needed.error() ==
          cat("challenge.json: hidden: ", name, " is needed by those it would be hidden from"));
  }
}

TEST_CASE("what hidden may name is said whole") {
  const Folder folder;
  for (const char* name : {"sol/", "./sol.py", ".git", "a/.b", "a//b", "/a", ".."}) {
    folder.file("challenge.json", with("[\"notes\"]", cat("[\"", name, "\"]")));
    CHECK(
        folder.error() ==
        cat("challenge.json: hidden[0]: expected a path of letters, digits, \"_\", \"-\" and "
            "\".\", with \"/\" between its parts alone, of which none begins with \".\", found \"",
            name, "\""));
  }
}

TEST_CASE("a challenge that changes after it was read is not copied as what it was") {
  const Folder folder;
  const Challenge challenge = folder.read();
  const TempDir to;
  copy_challenge(challenge, to.path() / "same");
  folder.file("baseline.py", "faster");
  const std::string message =
      json_faults::message_of([&] { copy_challenge(challenge, to.path() / "other"); });
  CHECK(message.find(": its files were changed while they were in use; try again") != message.npos);
}

TEST_CASE("copies of a challenge have the same modes whatever its own are") {
  const Folder folder;
  folder.file("tools/make.sh", "#!/bin/sh\n");
  folder.file("table", "1");
  for (const auto mode : {fs::perms::all, fs::perms::owner_read}) {
    for (const char* name : {"tools/make.sh", "table"}) fs::permissions(folder.path() / name, mode);
    const TempDir to;
    copy_challenge(folder.read(), to.path() / "copy");
    const auto copied = [&](const char* name) {
      return static_cast<unsigned>(fs::status(to.path() / "copy" / name).permissions());
    };
    CHECK(copied("tools/make.sh") == 0755);
    CHECK(copied("table") == 0644);
  }
}

TEST_CASE("the hash is what sha256sum prints") {
  const Folder folder;
  folder.file("data/a b.txt", "x");
  const std::string command = cat("cd '", folder.path().string(),
                                  "' && find * -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum "
                                  "| sha256sum > .sum");
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(read_file(folder.path() / ".sum").substr(0, 64) == folder.read().sha256);
}

TEST_CASE("input keys differ by every part, and no two lists of parts are confused") {
  std::set<std::uint64_t> keys;
  for (const char* secret : {"s", "t"}) {
    for (const char* evaluation : {"e", "f"}) {
      for (const char* shape : {"a", "b"}) {
        for (std::uint64_t replay : {0, 1, 10}) {
          for (const char* tensor : {"x", "y"}) {
            keys.insert(input_key(secret, evaluation, shape, replay, tensor));
          }
        }
      }
    }
  }
  CHECK(keys.size() == 48);
  CHECK(input_key("a", "bc", "d", 1, "x") != input_key("ab", "c", "d", 1, "x"));
  CHECK(input_key("a", "b", "c", 11, "x") != input_key("a", "b", "c", 1, "1x"));
  // A published evaluation must come out again: printf 1:s1:e1:a1:01:x | sha256sum
  CHECK(input_key("s", "e", "a", 0, "x") == 0xee720a99cb3ef052);
}

TEST_CASE("the challenges that ship are right") {
  int read = 0;
  const auto packages = fs::path(KJUDGE_TEST_FOLDER).parent_path() / "packages";
  for (const auto& entry : fs::directory_iterator(packages)) {
    if (!entry.is_directory()) continue;
    CAPTURE(entry.path().string());
    CHECK_NOTHROW(read_challenge(entry.path()));
    ++read;
  }
  CHECK(read >= 1);
}

TEST_CASE("what somebody asks for of a challenge, and what it has instead") {
  const auto shape = [](const char* name, const char* arch, const char* dtype, bool timed = true) {
    Shape made;
    made.name = name;
    made.arch = arch;
    made.dtype = dtype;
    made.timed = timed;
    return made;
  };
  Challenge challenge;
  challenge.name = "softmax";
  challenge.version = 2;
  challenge.shapes = {shape("a", "x86_64", "float32"), shape("b", "sm_*", "float32"),
                      shape("c", "sm_90", "bfloat16"), shape("t", "sm_*", "bfloat16", false)};
  const auto wanted = [&](const char* text) {
    return request_text(wanted_of(challenge, parse_request(text)));
  };
  // What narrows nothing is left out.
  CHECK(wanted_of(challenge, parse_request("softmax")) == VariantRequest{});
  CHECK(wanted_of(challenge, parse_request("softmax@2")) == VariantRequest{});
  CHECK(wanted("softmax:float32:x86_64") == "softmax::x86_64");
  CHECK(wanted("softmax:float32") == "softmax:float32");
  CHECK(wanted("softmax@2:bfloat16:NVIDIA H200:c") == "softmax:bfloat16:h200:c");
  CHECK(wanted("softmax::sm_90") == "softmax::sm_90");
  const auto said = [&](const char* text) {
    return json_faults::message_of([&] { wanted_of(challenge, parse_request(text)); });
  };
  CHECK(said("softmax@1") == "challenge softmax is judged in version 2, not 1");
  CHECK(said("softmax:int8") ==
        "challenge softmax version 2 has no shape of dtype \"int8\"; it has bfloat16, float32");
  CHECK(said("softmax:bfloat16::a") ==
        "challenge softmax version 2 has no shape \"a\" here; it has c");
  CHECK(said("softmax:::t") ==
        "challenge softmax version 2 has no shape \"t\" here; it has a, b, c");
  CHECK(said("softmax:bfloat16:sm_80").starts_with("challenge softmax version 2 has no shape of"));
  challenge.shapes.resize(1);
  CHECK(said("softmax::h200") ==
        "challenge softmax has no shape for \"h200\"; it has shapes for x86_64");
  CHECK(wanted("softmax::x86_64") == "softmax::x86_64");
}

TEST_CASE("a challenge's folder is told from the parts of a variant") {
  const auto of = [](const char* text) {
    const auto [name, parts] = split_name(text);
    return name + " " + parts;
  };
  CHECK(of("softmax") == "softmax ");
  CHECK(of("packages/softmax:float32") == "packages/softmax :float32");
  CHECK(of("softmax@2::h200") == "softmax @2::h200");
  const TempDir folder("kjudge-test");
  const std::filesystem::path odd = folder.path() / "a:b";
  std::filesystem::create_directory(odd);
  CHECK(split_name(odd.string()).name == odd.string());
}
