// SPDX-License-Identifier: Apache-2.0
#include "challenge/generators.h"

#include <doctest/doctest.h>

#include <fstream>

#include "driver/fill_kind.h"
#include "error.h"
#include "file.h"
#include "json_faults.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

// A challenge whose inputs are `inputs`, of a shape with rows = 6 and columns = 4.
class Folder {
 public:
  explicit Folder(const std::string& inputs) {
    for (const char* name : {"TASK.md", "reference.py", "baseline.py", "submission.py"}) {
      std::ofstream(directory_.path() / name) << name;
    }
    std::ofstream(directory_.path() / "challenge.json") << cat(R"({
      "format": "kjudge-challenge/1", "name": "drawn", "version": 1, "title": "Drawn",
      "author": "Ada", "tensors": {"inputs": [)",
                                                               inputs, R"(],
      "outputs": [{"name": "y", "dtype": "int32", "shape": [1]}]},
      "shapes": [{"arch": "x86_64", "dtype": "float32", "dims": {"rows": 6, "columns": 4}}]})");
  }
  fs::path path() const { return directory_.path(); }
  Shape read() const { return read_challenge(directory_.path()).shapes.front(); }
  // The message after the file's name.
  std::string error() const {
    const std::string message = json_faults::message_of([&] { read(); });
    const std::string prefix = (directory_.path() / "challenge.json: ").string();
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

 private:
  TempDir directory_;
};

std::string input(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view generator) {
  return cat(R"({"name": ")", name, R"(", "dtype": ")", dtype, R"(", "shape": [)", shape,
             R"(], "generator": {"kind": )", generator, "}}");
}

// What is wrong with one input of this generator.
std::string error_of(std::string_view dtype, std::string_view shape, std::string_view generator) {
  const std::string message = Folder(input("x", dtype, shape, generator)).error();
  const std::string prefix = "tensors.inputs[0].generator";
  return message.starts_with(prefix + ": ") ? message.substr(prefix.size() + 2) : message;
}

Generator only(std::string_view dtype, std::string_view shape, std::string_view generator) {
  return Folder(input("x", dtype, shape, generator)).read().regimes[0].generators[0];
}

}  // namespace

TEST_CASE("every word of a generator in the format is the one that the recorder is told") {
  CHECK(kFillWords.size() == 16);
  for (const auto& [word, kind] : kFillWords) {
    CHECK(name(kind) == word);
    CHECK(parse_fill_kind(word) == kind);
    // Known to the format, or it would name the words that are.
    const std::string message = error_of("float32", "1", cat("\"", word, "\""));
    CHECK_MESSAGE(message.find("kind: expected") == message.npos, message);
  }
  CHECK(name(fill_bits).empty());
  CHECK(!parse_fill_kind("bits"));
}

TEST_CASE("bernoulli") {
  const Generator made = only("bool", "\"rows\"", R"("bernoulli", "probability": 0.125)");
  CHECK(made.kind == fill_bernoulli);
  CHECK(made.a == 0.125);
  CHECK(made.b == 1);
  CHECK(only("float16", "1", R"("bernoulli", "probability": 1, "value": -65504)").b == -65504);
  CHECK(error_of("bool", "1", R"("bernoulli", "probability": 0.5, "value": 2)") ==
        "makes values outside of the range for bool (shapes[0]), which is from 0 to 1");
  CHECK(error_of("int8", "1", R"("bernoulli", "probability": 0.5, "value": 0.5)")
            .starts_with("makes fractions for int8 (shapes[0])"));
  CHECK(error_of("bool", "1", R"("bernoulli", "probability": 1.5)") ==
        "tensors.inputs[0].generator.probability: expected a number from 0 to 1, found 1.5");
}

TEST_CASE("permutation") {
  const Generator made = only("int16", "\"rows\", \"columns\"", R"("permutation")");
  CHECK(made.kind == fill_permutation);
  CHECK(made.row == 4);
  CHECK(only("int64", "", R"("permutation")").row == 1);
  CHECK(error_of("float32", "8", R"("permutation")") ==
        "needs an integer type, not float32 (shapes[0])");
  CHECK(error_of("bool", "2", R"("permutation")") == "needs an integer type, not bool (shapes[0])");
  CHECK(error_of("uint8", "256", R"("permutation")") == "no error");
  CHECK(error_of("uint8", "257", R"("permutation")") ==
        "makes values outside of the range for uint8 (shapes[0]), which is from 0 to 255");
}

TEST_CASE("block_table") {
  const std::string table = R"("block_table", "blocks": 24)";
  const Generator made = only("int32", "\"rows\", \"columns\"", table);
  CHECK(made.kind == fill_block_table);
  CHECK(made.row == 4);
  CHECK(made.size == 24);
  CHECK(made.source.empty());
  CHECK(error_of("int32", "5, 5", table) ==
        "no block stands twice, and x has 25 places for 24 blocks (shapes[0])");
  CHECK(error_of("float32", "2", table) == "needs an integer type, not float32 (shapes[0])");
  CHECK(
      error_of("int8", "2", R"("block_table", "blocks": 129)").starts_with("makes values outside"));
  CHECK(error_of("uint8", "2", table).starts_with("makes values outside"));  // unused is -1
  CHECK(error_of("int32", "2", R"("block_table", "blocks": "pages")") ==
        "tensors.inputs[0].generator.blocks: shapes[0].dims has no \"pages\"");
  CHECK(error_of("int32", "2", table + R"(, "block_size": 16)") ==
        "\"lengths\" and \"block_size\" come together");
  CHECK(error_of("int32", "2", table + R"(, "block_size": 16, "lengths": "x")") ==
        "tensors.inputs[0].generator.lengths: there is no other input \"x\"");

  const auto with_lengths = [&](std::string_view dtype, std::string_view shape,
                                std::string_view generator) {
    return Folder(cat(input("x", "int32", "\"rows\", 4",
                            table + R"(, "block_size": 16, "lengths": "len", "unused": 7)"),
                      ",", input("len", dtype, shape, generator)));
  };
  const Shape shape =
      with_lengths("int64", "\"rows\"", R"("integers", "low": 1, "high": 64)").read();
  const Generator& used = shape.regimes[0].generators[0];
  CHECK(used.source == "len");
  CHECK(used.other == DType::int64);
  CHECK(used.a == 7);
  CHECK(used.b == 16);
  CHECK(fill_order(shape.regimes[0].generators) == std::vector<std::size_t>{1, 0});
  const std::string at = "tensors.inputs[0].generator.lengths: ";
  CHECK(with_lengths("int32", "5", R"("constant", "value": 3)").error() ==
        at + "len has 5 lengths for the 6 rows of x (shapes[0])");
  CHECK(with_lengths("float32", "6", R"("constant", "value": 3)").error() ==
        at + "len holds no lengths");
  CHECK(with_lengths("int32", "6", R"("block_table", "blocks": 9)").error() ==
        at + "len holds no lengths");
}

TEST_CASE("one_hot") {
  const Generator made = only("float32", "\"rows\", \"columns\"", R"("one_hot", "value": 0.5)");
  CHECK(made.kind == fill_one_hot);
  CHECK(made.row == 4);
  CHECK(made.b == 0.5);
  CHECK(error_of("int8", "4", R"("one_hot", "value": 128)").starts_with("makes values outside"));
  CHECK(error_of("int8", "4", R"("one_hot", "value": 1.5)").starts_with("makes fractions"));
}

TEST_CASE("power_law") {
  const Generator made = only("int32", "\"rows\"", R"("power_law", "low": -1, "high": 9)");
  CHECK(made.kind == fill_power_law);
  CHECK(made.a == -1);
  CHECK(made.b == 9);
  CHECK(made.c == 1);
  CHECK(made.size == 0);
  CHECK(only("int64", "1", R"("power_law", "low": 0, "high": 1, "scattered": true)").size == 1);
  CHECK(error_of("int32", "1", R"("power_law", "low": 1, "high": 0)") ==
        "\"low\" is greater than \"high\"");
  CHECK(error_of("int8", "1", R"("power_law", "low": 0, "high": 128)")
            .starts_with("makes values outside"));
  CHECK(error_of("float64", "1", R"("power_law", "low": 0, "high": 1)")
            .starts_with("needs an integer type"));
  CHECK(error_of("int64", "1", R"("power_law", "low": 1, "high": 1099511627776)") == "no error");
  CHECK(error_of("int64", "1",
                 R"("power_law", "low": 0, "high": 1099511627776, "scattered": true)") ==
        "makes more than 2^40 values, too many to be \"scattered\"");
}

TEST_CASE("lengths and offsets") {
  const Generator made =
      only("int32", "\"rows\"", R"("lengths", "total": 100, "least": 2, "most": 50, "skew": 0.75)");
  CHECK(made.kind == fill_lengths);
  CHECK(made.size == 100);
  CHECK(made.a == 2);
  CHECK(made.b == 0.75);
  CHECK(made.c == 50);
  CHECK(only("int32", "1", R"("lengths", "total": "rows")").c == 6);
  CHECK(error_of("int32", "6", R"("lengths", "total": 100, "least": 17)") ==
        "6 lengths from 17 to 100 do not add up to 100 (shapes[0])");
  CHECK(error_of("int32", "6", R"("lengths", "total": 100, "most": 16)") ==
        "6 lengths from 0 to 16 do not add up to 100 (shapes[0])");
  CHECK(error_of("int32", "6", R"("lengths", "total": 96, "least": 16, "most": 16)") == "no error");
  CHECK(error_of("int32", "2, 3", R"("lengths", "total": 100)") ==
        "needs a tensor of one dimension; x has 2");
  CHECK(
      error_of("float32", "6", R"("lengths", "total": 100)").starts_with("needs an integer type"));
  CHECK(error_of("uint8", "6", R"("lengths", "total": 256)").starts_with("makes values outside"));
  CHECK(error_of("uint8", "6", R"("lengths", "total": 256, "most": 255)") == "no error");

  const Generator alone = only("int64", "7", R"("offsets", "total": 100, "least": 16)");
  CHECK(alone.kind == fill_offsets);
  CHECK(alone.size == 100);
  CHECK(alone.a == 16);
  CHECK(alone.key_of.empty());
  CHECK(error_of("int64", "7", R"("offsets", "total": 100, "least": 17)") ==
        "6 lengths from 17 to 100 do not add up to 100 (shapes[0])");
  CHECK(error_of("uint8", "7", R"("offsets", "total": 256, "most": 255)")
            .starts_with("makes values outside"));
  CHECK(error_of("int64", "1", R"("offsets", "total": 100)") ==
        "needs at least 2 elements (shapes[0])");
  CHECK(error_of("int64", "7", R"("offsets")") == "give either \"of\" or \"total\"");
  CHECK(error_of("int64", "7", R"("offsets", "total": 1, "of": "y")") ==
        "give either \"of\" or \"total\"");
  CHECK(error_of("int64", "7", R"("offsets", "of": "y")") ==
        "tensors.inputs[0].generator.of: there is no other input \"y\"");

  const auto both = [&](std::string_view shape, std::string_view generator) {
    return Folder(cat(input("x", "int64", "7", R"("offsets", "of": "len")"), ",",
                      input("len", "int32", shape, generator)));
  };
  const Shape shape =
      both("6", R"("lengths", "total": 60, "least": 3, "most": 20, "skew": 1)").read();
  const Generator& offsets = shape.regimes[0].generators[0];
  CHECK(offsets.kind == fill_offsets);
  CHECK(offsets.key_of == "len");
  CHECK(offsets.size == 60);
  CHECK(offsets.a == 3);
  CHECK(offsets.b == 1);
  CHECK(offsets.c == 20);
  CHECK(both("7", R"("lengths", "total": 60)").error() ==
        "tensors.inputs[0].generator.of: len has 7 lengths, and x the offsets of 6 (shapes[0])");
  CHECK(both("6", R"("constant", "value": 60)").error() ==
        "tensors.inputs[0].generator.of: the generator of len is not \"lengths\"");
}

TEST_CASE("sorted") {
  const Generator made = only("int32", "\"rows\"", R"("sorted", "low": -5, "high": 95)");
  CHECK(made.kind == fill_sorted);
  CHECK(made.a == -5);
  CHECK(made.b == 0.5);
  CHECK(made.size == 100);
  CHECK(error_of("int32", "6", R"("sorted", "low": 1, "high": 0)") ==
        "\"low\" is greater than \"high\"");
  CHECK(error_of("int8", "6", R"("sorted", "low": 0, "high": 200)").starts_with("makes values"));
  CHECK(
      error_of("float32", "6", R"("sorted", "low": 0, "high": 1)").starts_with("needs an integer"));
  CHECK(error_of("int32", "2, 3", R"("sorted", "low": 0, "high": 1)") ==
        "needs a tensor of one dimension; x has 2");
}

TEST_CASE("low_rank") {
  const Generator made =
      only("bfloat16", "3, \"rows\", \"columns\"", R"("low_rank", "rank": 2, "deviation": 0.5)");
  CHECK(made.kind == fill_low_rank);
  CHECK(made.row == 4);
  CHECK(made.size == 24);
  CHECK(made.b == 0.5);
  CHECK(made.c == 2);
  CHECK(error_of("int8", "4, 4", R"("low_rank", "rank": 2)") ==
        "needs a floating type, not int8 (shapes[0])");
  CHECK(error_of("float32", "4", R"("low_rank", "rank": 2)") ==
        "makes matrices, and x has 1 dimensions");
  CHECK(error_of("float8_e4m3", "4, 4", R"("low_rank", "rank": 128, "deviation": 7)")
            .starts_with("makes values outside"));
  CHECK(error_of("float32", "4, 4", R"("low_rank", "rank": 129)") ==
        "tensors.inputs[0].generator.rank: expected an integer from 1 to 128, found 129");
}

TEST_CASE("quantised and scales") {
  const auto both = [](std::string_view dtype, std::string_view shape, std::string_view block,
                       std::string_view scale_dtype, std::string_view scale_shape) {
    return Folder(cat(input("x", dtype, shape,
                            cat(R"("quantised", "mean": 1, "deviation": 2, "block": )", block)),
                      ",", input("s", scale_dtype, scale_shape, R"("scales", "of": "x")")));
  };
  const Shape shape = both("int8", "\"rows\", 64", "32", "float16", "\"rows\", 2").read();
  const Generator& values = shape.regimes[0].generators[0];
  CHECK(values.kind == fill_quantised);
  CHECK(values.a == 1);
  CHECK(values.b == 2);
  CHECK(values.c == 0);
  CHECK(values.row == 32);
  CHECK(values.other == DType::float16);
  CHECK(values.key_of.empty());
  const Generator& scales = shape.regimes[0].generators[1];
  CHECK(scales.kind == fill_scales);
  CHECK(scales.a == 1);
  CHECK(scales.b == 2);
  CHECK(scales.row == 32);
  CHECK(scales.other == DType::int8);
  CHECK(scales.key_of == "x");

  const std::string at = "tensors.inputs[0].generator";
  CHECK(both("int16", "6, 64", "32", "float16", "6, 2").error() ==
        at + ": makes int8, float8_e4m3, float8_e5m2 or float4_e2m1, not int16 (shapes[0])");
  CHECK(both("int8", "6, 60", "\"pages\"", "float16", "6, 2").error() ==
        at + ".block: shapes[0].dims has no \"pages\"");
  CHECK(both("int8", "6, 60", "32", "float16", "6, 2").error() ==
        at + ".block: the 60 values of a row are no whole number of blocks of 32 (shapes[0])");
  CHECK(both("float4_e2m1", "6, 66", "33", "float16", "6, 2").error() ==
        at + ".block: two values of float4_e2m1 share a byte; a block of 33 would end inside one "
             "(shapes[0])");
  CHECK(both("int8", "6, 64", "32", "int32", "6, 2").error() ==
        "tensors.inputs[1].generator: needs a floating type, not int32 (shapes[0])");
  CHECK(both("int8", "6, 64", "32", "float16", "6, 3").error() ==
        "tensors.inputs[1].generator.of: x has 12 blocks, and s 18 scales (shapes[0])");
  CHECK(error_of("int8", "64", R"("quantised", "block": 32)") ==
        "no input has the scales: the generator {\"kind\": \"scales\", \"of\": \"x\"}");
  CHECK(Folder(cat(input("x", "int8", "64", R"("quantised", "block": 32)"), ",",
                   input("s", "float32", "2", R"("scales", "of": "x")"), ",",
                   input("t", "float32", "2", R"("scales", "of": "x")")))
            .error()
            .find("more than one input has the scales") != std::string::npos);
  CHECK(Folder(cat(input("x", "int8", "64", R"("constant", "value": 32)"), ",",
                   input("s", "float32", "2", R"("scales", "of": "x")")))
            .error() == "tensors.inputs[1].generator.of: the generator of x is not \"quantised\"");
  CHECK(error_of("float32", "2", R"("scales", "of": "x")") ==
        "tensors.inputs[0].generator.of: there is no other input \"x\"");
  CHECK(both("float4_e2m1", "6, 64", "32", "float8_e4m3", "6, 2").error() == "no error");
  CHECK(Folder(cat(input("x", "float4_e2m1", "64", R"("quantised", "block": 32, "deviation": 500)"),
                   ",", input("s", "float8_e4m3", "2", R"("scales", "of": "x")")))
            .error()
            .starts_with("tensors.inputs[1].generator: makes values outside of the range for "
                         "float8_e4m3"));
}

TEST_CASE("scales that would be 0 are refused") {
  const auto weights = [](std::string_view deviation, std::string_view scales) {
    return Folder(
        cat(input("x", "int8", "64", cat(R"("quantised", "block": 32, "deviation": )", deviation)),
            ",", input("s", scales, "2", R"("scales", "of": "x")")));
  };
  CHECK(weights("0.02", "float8_e4m3").error() ==
        "tensors.inputs[1].generator: makes scales that are 0 for float8_e4m3 (shapes[0]), and all "
        "that is scaled with them: x has too small a deviation");
  CHECK(weights("0.02", "float16").error() == "no error");
  CHECK(weights("0.5", "float8_e4m3").error() == "no error");
  CHECK(weights("0", "float8_e4m3").error() == "no error");  // as it says
}

TEST_CASE("python") {
  const Folder folder(cat(input("x", "int64", "7", R"("python")"), ",",
                          input("y0", "float4_e2m1", "6", R"("constant", "value": 1)")));
  CHECK(folder.error() == cat((folder.path() / "inputs.py").string(),
                              ": no such file; it makes the inputs whose generator is \"python\""));
  std::ofstream(folder.path() / "inputs.py") << "";
  const Shape shape = folder.read();
  CHECK(shape.regimes[0].generators[0].kind == fill_python);
  CHECK(uses_python(shape.regimes[0]));
  CHECK(fill_order(shape.regimes[0].generators) == std::vector<std::size_t>{1});
  const Folder table(
      cat(input("x", "int32", "2, 4",
                R"("block_table", "blocks": 24, "block_size": 16, "lengths": "len")"),
          ",", input("len", "int32", "2", R"("python")")));
  CHECK(table.error() ==
        "tensors.inputs[0].generator.lengths: len holds no lengths that are there "
        "before inputs.py runs");
}

TEST_CASE("a regime's generator is held to the inputs that it names") {
  const std::string inputs = cat(input("x", "int64", "7", R"("offsets", "of": "len")"), ",",
                                 input("len", "int32", "6", R"("lengths", "total": 60)"));
  const Folder folder(inputs);
  CHECK(folder.read().regimes[0].generators[0].key_of == "len");
  const GeneratorFile constant = [] {
    GeneratorFile file;
    file.kind = fill_constant;
    return file;
  }();
  // As a regime that gives "len" another generator has it.
  const Shape shape = folder.read();
  GeneratorFile offsets;
  offsets.kind = fill_offsets;
  offsets.of = "len";
  std::string told;
  try {
    resolve_generators(shape, "shapes[0]", {{offsets, "a"}, {constant, "b"}},
                       [](const std::string& at, const std::string& message) {
                         throw Error(Fault::package, cat(at, ": ", message));
                       });
  } catch (const Error& error) {
    told = error.what();
  }
  CHECK(told == "a.of: the generator of len is not \"lengths\"");
}
