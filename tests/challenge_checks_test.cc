// SPDX-License-Identifier: Apache-2.0

// What challenge.json says of outputs and of inputs.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "challenge/challenge.h"
#include "challenge_folder.h"
#include "error.h"

using namespace kjudge;

TEST_CASE("each check has its fields, and no others") {
  const auto checks = [](std::string_view text) {
    const Folder folder;
    folder.file("challenge.json", with("\"checks\": [", cat("\"checks\": [", text, ", ")));
    return folder.read().shapes[0].outputs[0].checks.at(0);
  };
  const auto error = [](std::string_view text) {
    const std::string message = error_with("\"checks\": [", cat("\"checks\": [", text, ", "));
    const std::string_view prefix = "challenge.json: tensors.outputs[0].checks[0]";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  };
  Check check = checks(R"({"kind": "rel_l2", "limit": 1e-4})");
  CHECK(check.kind == CheckKind::rel_l2);
  CHECK(check.limit == 1e-4);
  CHECK(check.per == Per::row);
  CHECK(check.quantile == 1);
  check = checks(R"({"kind": "rel_l2", "limit": 1e-4, "per": "tensor", "quantile": 0.99})");
  CHECK(check.per == Per::tensor);
  CHECK(check.quantile == 0.99);
  check = checks(R"({"kind": "cosine", "min": 0.999})");
  CHECK(check.kind == CheckKind::cosine);
  CHECK(check.limit == 0.999);
  CHECK(error(R"({"kind": "rel_l2"})") ==
        ": field \"limit\" is missing; expected a number from 1e-18 to 1");
  CHECK(error(R"({"kind": "rel_l2", "limit": 0})") ==
        ".limit: expected a number from 1e-18 to 1, found 0");
  CHECK(error(R"({"kind": "rel_l2", "limit": 0.1, "quantile": 0.4})") ==
        ".quantile: expected a number from 0.5 to 1, found 0.4");
  CHECK(error(R"({"kind": "rel_l2", "limit": 0.1, "per": "column"})") ==
        ".per: expected \"row\" or \"tensor\", found \"column\"");
  CHECK(error(R"({"kind": "rel_l2", "limit": 0.1, "rtol": 0.1})") ==
        ".rtol: unknown field; the fields here are kind, limit, per, quantile, dtype");
  check = checks(R"({"kind": "row_bound", "c": 1e-5})");
  CHECK(check.kind == CheckKind::row_bound);
  CHECK(check.c == 1e-5);
  CHECK(check.rtol == 0);
  check = checks(R"({"kind": "codes"})");
  CHECK(check.kind == CheckKind::codes);
  CHECK(check.same == 0.99);
  CHECK(check.within == 1);
  check = checks(R"({"kind": "custom", "limit": 0})");
  CHECK(check.kind == CheckKind::custom);
  CHECK_FALSE(check.over_evaluation);
  CHECK(checks(R"({"kind": "custom", "limit": 3, "per": "evaluation"})").over_evaluation);
  CHECK(error(R"({"kind": "custom", "limit": 3, "per": "row"})") ==
        ".per: expected \"replay\" or \"evaluation\", found \"row\"");
  check = checks(R"({"kind": "versus_baseline", "factor": 2, "floor": 1e-5})");
  CHECK(check.kind == CheckKind::versus_baseline);
  CHECK(check.factor == 2);
  CHECK(check.floor == 1e-5);
  CHECK(error(R"({"kind": "versus_baseline", "factor": 2})") ==
        ": field \"floor\" is missing; expected a number from 1e-18 to 1");
  CHECK(error(R"({"kind": "versus_baseline", "factor": 0.5, "floor": 1e-5})") ==
        ".factor: expected a number from 1 to 1000, found 0.5");
  CHECK(error(R"({"kind": "row_bound"})") ==
        ": neither \"rtol\" nor \"c\" is above 0; use \"exact\" for equal values");
  CHECK(error(R"({"kind": "codes", "within": 1001})") ==
        ".within: expected an integer from 0 to 1000, found 1001");
  CHECK(error(R"({"kind": "cosine"})") ==
        ": field \"min\" is missing; expected a number from 1e-18 to 1");
}

TEST_CASE("an output that names no checks has those of its dtype") {
  const auto checks = [](const std::string& output, const std::string& input,
                         const std::string& more, int n = 4096) {
    const Folder folder;
    folder.file("challenge.json", cat(R"({
      "format": "kjudge-challenge/1", "name": "copy", "version": 1, "title": "Copy",
      "author": "Ada", "tensors": {
        "inputs": [{"name": "x", "dtype": ")",
                                      input, R"(", "shape": ["n"]}],
        "outputs": [{"name": "y", "dtype": ")",
                                      output, R"(", "shape": ["n"])", more, R"(}]},
      "shapes": [{"arch": "sm_90", "dtype": "float32", "dims": {"n": )",
                                      n, "}}]}"));
    return folder.read().shapes[0].outputs[0].checks;
  };
  struct Row {
    const char *output, *input, *more;
    double factor, floor, rtol, c;
  };
  const Row rows[] = {
      {"float64", "float64", "", 2, 1e-14, 1e-13, 1e-13},
      {"float32", "float32", "", 3, 1e-5, 1e-5, 1e-5},
      {"float32", "float32", ", \"tf32\": true", 2, 1e-3, 2e-3, 2e-3},
      {"float16", "float32", ", \"checks\": []", 3, 1e-3, 2e-3, 1e-3},
      {"bfloat16", "bfloat16", "", 3, 5e-3, 1.6e-2, 4e-3},
      {"bfloat16", "float8_e4m3", "", 3, 5e-3, 1.6e-2, 1e-2},
      {"float8_e4m3", "float32", "", 2, 4e-2, 0.125, 0.125},
      {"float8_e5m2", "float32", "", 2, 8e-2, 0.25, 0.25},
      {"float4_e2m1", "float32", "", 2, 0.15, 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.output);
    CAPTURE(row.more);
    const auto made = checks(row.output, row.input, row.more);
    REQUIRE(made.size() == 2);
    CHECK(made[0].kind == CheckKind::versus_baseline);
    CHECK(made[0].factor == row.factor);
    CHECK(made[0].floor == row.floor);
    CHECK(made[1].kind == (row.c == 0 ? CheckKind::codes : CheckKind::row_bound));
    CHECK(made[1].rtol == row.rtol);
    CHECK(made[1].c == row.c);
  }
  // A longer sum is further off.
  for (const auto& [n, times] : {std::pair(1, 1.0), {16384, 2.0}, {1 << 24, 10.0}}) {
    CHECK(checks("float32", "float32", "", n)[0].floor == 1e-5 * times);
    CHECK(checks("float64", "float64", "", n)[1].rtol == 1e-13 * times);
    CHECK(checks("float32", "float32", "", n)[1].c == 1e-5 * times);
    CHECK(checks("float32", "float32", ", \"tf32\": true", n)[0].floor == 1e-3);
    CHECK(checks("float16", "float32", "", n)[1].rtol == 2e-3);
  }
  for (const char* dtype : {"int64", "int32", "int16", "int8", "uint8", "bool"}) {
    const auto made = checks(dtype, "float32", "");
    REQUIRE(made.size() == 1);
    CHECK(made[0].kind == CheckKind::exact);
  }
  CHECK(error_with("\"overflow\": \"infinity\"", "\"tf32\": true") ==
        "challenge.json: tensors.outputs[0].tf32: chooses the checks of an output that names "
        "none, and this one does");
}

TEST_CASE("generators make values that the input can hold") {
  const auto generator = [](std::string_view text) {
    return error_with("\"kind\": \"integers\", \"low\": 0, \"high\": 9", text);
  };
  CHECK(generator("\"kind\": \"normal\"") ==
        "challenge.json: tensors.inputs[1].generator: makes fractions for int32 (shapes[0]); use "
        "\"integers\" or a whole \"constant\"");
  CHECK(generator("\"kind\": \"constant\", \"value\": 0.5").find("makes fractions") !=
        std::string::npos);
  CHECK(generator("\"kind\": \"constant\", \"value\": 7") == "no error");
  CHECK(generator("\"kind\": \"integers\", \"low\": 0, \"high\": 2147483648") ==
        "challenge.json: tensors.inputs[1].generator: makes values outside of the range for int32 "
        "(shapes[0]), which is from -2147483648 to 2147483647");
  CHECK(generator("\"kind\": \"integers\", \"low\": 3, \"high\": 2") ==
        "challenge.json: tensors.inputs[1].generator: \"low\" is greater than \"high\"");
  CHECK(generator("\"kind\": \"integers\", \"low\": 3") ==
        "challenge.json: tensors.inputs[1].generator: field \"high\" is missing; expected an "
        "integer from -2^53 to 2^53");
  CHECK(generator("\"kind\": \"integers\", \"low\": 3, \"high\": 4, \"mean\": 1") ==
        "challenge.json: tensors.inputs[1].generator.mean: unknown field; the fields here are "
        "kind, low, high");
  CHECK(generator("\"kind\": \"poisson\"") ==
        "challenge.json: tensors.inputs[1].generator.kind: expected \"normal\", \"uniform\", "
        "\"integers\", \"constant\", \"bernoulli\", \"permutation\", \"block_table\", "
        "\"one_hot\", \"power_law\", \"lengths\", \"offsets\", \"sorted\", \"low_rank\", "
        "\"quantised\", \"scales\" or \"python\", found \"poisson\"");
  CHECK(error_with(",\n       \"generator\": {\"kind\": \"integers\", \"low\": 0, \"high\": 9}", "")
            .starts_with("challenge.json: tensors.inputs[1].generator: an input of int32 needs a "
                         "generator, such as {"));
  // 20000 is fine in float32 but six deviations are not in float16.
  CHECK(error_with("\"shape\": [\"rows\", \"columns\"]",
                   "\"shape\": [\"rows\", \"columns\"], \"generator\": {\"kind\": \"normal\", "
                   "\"deviation\": 20000}") ==
        "challenge.json: tensors.inputs[0].generator: makes values outside of the range for "
        "float16 (shapes[1]), which is from -65504 to 65504");
}
