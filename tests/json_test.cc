// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "json_faults.h"

using namespace kjudge;

namespace {

Json parse(std::string_view text) { return parse_json(text, "f.json", Fault::malformed); }

std::string error_of(std::string_view text) {
  return json_faults::message_of([&] { parse(text); });
}

}  // namespace

TEST_CASE("values parse to what they are") {
  CHECK(parse("null") == Json{});
  CHECK(parse(" true ") == Json{true});
  CHECK(parse("-7") == Json{std::int64_t{-7}});
  CHECK(parse("9223372036854775807") == Json{std::int64_t{9223372036854775807}});
  CHECK(parse("9223372036854775808") == Json{9223372036854775808.0});
  CHECK(parse("1.0") == Json{1.0});
  CHECK(parse("\"a\\u00e9\\n\"") == Json{std::string("a\xc3\xa9\n")});
  CHECK(parse("[1, [], {}]") ==
        Json{Json::List{Json{std::int64_t{1}}, Json{Json::List{}}, Json{Json::Object{}}}});
  CHECK(parse("{\"b\": 1, \"a\": 2}") ==
        Json{Json::Object{{"b", Json{std::int64_t{1}}}, {"a", Json{std::int64_t{2}}}}});
}

TEST_CASE("what is no JSON is refused, with line and column") {
  CHECK(error_of("{\n  \"a\": x\n}").starts_with("f.json: parse error at line 2, column "));
  for (std::string_view text : {"",
                                "  ",
                                "{",
                                "[1,]",
                                "{\"a\": 1,}",
                                "[1] 2",
                                "01",
                                "+1",
                                "NaN",
                                "Infinity",
                                "1e999",
                                "'a'",
                                "\"\t\"",
                                "\"\\x\"",
                                "// c\n1",
                                "/* c */ 1",
                                "\"\\ud800\"",
                                "\xff",
                                "\"\xff\"",
                                "\"\xc0\x80\"",
                                "\"\xed\xa0\x80\"",
                                "\"\xf4\x90\x80\x80\"",
                                "[\"a\" \"b\"]"}) {
    CAPTURE(text);
    CHECK(error_of(text).starts_with("f.json: "));
  }
}

TEST_CASE("the same name twice is refused at any depth") {
  CHECK(error_of("{\"a\": 1, \"a\": 1}") ==
        "f.json: the name \"a\" stands twice in the same object");
  CHECK(error_of("[{\"b\": {\"a\": 1, \"c\": {}, \"a\": 1}}]") ==
        "f.json: [0].b: the name \"a\" stands twice in the same object");
  CHECK_NOTHROW(parse("{\"a\": {\"a\": {\"a\": 1}}, \"b\": [{\"a\": 1}, {\"a\": 1}]}"));
}

TEST_CASE("a number that no double holds is refused with its path, in a short message") {
  const std::string huge = "1" + std::string(400, '0');
  const std::string found =
      "no field takes a number beyond 1.7e308, found " + huge.substr(0, 60) + "...";
  CHECK(error_of(huge) == "f.json: " + found);
  CHECK(error_of(cat("{\"shapes\": [{\"dims\": {\"rows\": ", huge, "}}]}")) ==
        "f.json: shapes[0].dims.rows: " + found);
  CHECK(error_of(cat("{\"a\": [1, 2, -", huge, "]}"))
            .starts_with("f.json: a[2]: no field takes a number"));
  CHECK(error_of("{\"a\": 1e999}") ==
        "f.json: a: no field takes a number beyond 1.7e308, found 1e999");
  CHECK(parse("1e-999") == Json{0.0});
}

TEST_CASE("messages show no more than a part of what is too long") {
  const std::string name(100'000, 'n');
  const std::string part = cat("\"", std::string(60, 'n'), "\"...");
  CHECK(error_of(cat("{\"", name, "\": 1, \"", name, "\": 2}")) ==
        cat("f.json: the name ", part, " stands twice in the same object"));
  CHECK(error_of(cat("{\"", name, "\": 1e999}"))
            .starts_with(cat("f.json: [", part, "]: no field takes")));
  CHECK(error_of(cat("{\"a\": \"", name)).size() < 400);
}

TEST_CASE("a byte order mark is refused") {
  CHECK(error_of("\xef\xbb\xbf{}") ==
        "f.json: begins with a byte order mark; save it as UTF-8 without one");
  CHECK(error_of("\xef\xbb\xbf").find("byte order mark") != std::string::npos);
  CHECK(error_of("\xff\xfe{\0}\0") != "no error");
}

TEST_CASE("a NUL is no end of the text") {
  const std::string text("{\"a\": 1}\0{\"evil\": [", 20);
  CHECK(error_of(text) == "f.json: byte 8: a NUL, which JSON has nowhere");
  CHECK(error_of(std::string_view("{\"a\": \"\0\"}", 10)).find("a NUL") != std::string::npos);
}

TEST_CASE("depth and size are bounded") {
  const std::string deep(33, '[');
  CHECK(error_of(deep) == "f.json: nested deeper than 32 levels");
  CHECK(error_of(std::string(1'000'000, '[')) == "f.json: nested deeper than 32 levels");
  CHECK_NOTHROW(parse(std::string(32, '[') + std::string(32, ']')));
  CHECK(json_faults::message_of([] {
          parse_json("[1, 2, 3]", "f.json", Fault::malformed, {.depth = 2, .values = 3});
        }) == "f.json: more than 3 values");
}

TEST_CASE("printing is stable and keeps lines short") {
  const Json json{Json::Object{
      {"a", Json{std::int64_t{1}}},
      {"list", Json{Json::List{Json{1.5}, Json{true}, Json{}}}},
      {"empty", Json{Json::Object{}}},
      {"long", Json{Json::List{Json{std::string(60, 'x')}, Json{std::string(60, 'y')}}}}}};
  CHECK(print_json(json) ==
        "{\n  \"a\": 1,\n  \"list\": [1.5, true, null],\n  \"empty\": {},\n"
        "  \"long\": [\n    \"" +
            std::string(60, 'x') + "\",\n    \"" + std::string(60, 'y') + "\"\n  ]\n}\n");
  CHECK(print_json(Json{Json::Object{}}) == "{\n}\n");
  CHECK(print_json(Json{std::int64_t{3}}) == "3\n");
}

TEST_CASE("numbers read back as the same double") {
  std::mt19937_64 draw(3);
  const auto back = [](double value) {
    const Json json = parse(print_json(Json{value}));
    return number_kind().read(JsonCursor(json, "f.json", Fault::malformed));
  };
  for (double value : {0.1, 1.0, 1e22, 1e300, 5e-324, 1 / 3.0, 123456789012345680.0}) {
    CHECK(back(value) == value);
  }
  CHECK(std::signbit(back(-0.0)));
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bits = draw();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value) && back(value) != value) FAIL_CHECK(value);
  }
  CHECK(print_json(Json{0.1}) == "0.1\n");
  CHECK(print_json(Json{300.0}) == "300.0\n");
  CHECK_THROWS_AS(print_json(Json{std::nan("")}), Error);
  CHECK_THROWS_AS(print_json(Json{HUGE_VAL}), Error);
}

TEST_CASE("strings are escaped, and bytes that are no UTF-8 replaced") {
  const auto printed = [](std::string text) {
    std::string out = print_json(Json{std::move(text)});
    out.pop_back();
    return out;
  };
  CHECK(printed("a\"\\\n\t\x01\x7f") == "\"a\\\"\\\\\\n\\t\\u0001\\u007f\"");
  CHECK(printed("\xe2\x82\xac\xf0\x9f\x98\x80") == "\"\xe2\x82\xac\xf0\x9f\x98\x80\"");
  for (std::string_view bad : {"\xff", "\xc3", "\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    const std::string text = printed(cat("<", bad, ">"));
    CHECK(text.find("<\xef\xbf\xbd") == 1);
    CHECK_NOTHROW(parse(text));
  }
  std::mt19937 draw(5);
  for (int i = 0; i < 1000; ++i) {
    std::string noise(20, 0);
    for (char& c : noise) c = static_cast<char>(draw());
    const Json once = parse(printed(noise));
    CHECK(parse(print_json(once)) == once);
  }
}

TEST_CASE("what is taken, and as what, is as nlohmann's parser has it") {
  const std::string sample =
      "{\"a\": [1, -2.5e+3, 0.125, true, false, null, \"t\\n\\u00e9\\\"x\", \"\xc3\xa9\"], \"b\": "
      "{\"c\": -0, \"d\": 12345678901234567890, \"e\": 1e400, \"f\": {}, \"g\": []} , \"h\":-0.0}";
  using namespace std::string_view_literals;  // there is a zero byte in it
  static constexpr std::string_view kBytes =
      "\"\\{}[]:,0123456789.eE+-tfn u\x00\x1f\x7f\xc3\xa9\xff\n"sv;
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  int taken = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text = sample;
    // Cuts make small texts, in which a change is more often right.
    if (i % 3 != 0) text = text.substr(below(text.size()), 1 + below(12));
    for (std::size_t k = below(3); k > 0 && !text.empty(); --k) {
      const std::size_t at = below(text.size());
      if (below(2) == 0)
        text.erase(at, 1);
      else
        text.insert(at, 1, kBytes[below(kBytes.size())]);
    }
    CAPTURE(text);
    std::optional<nlohmann::json> theirs;
    try {
      theirs = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception&) {
    }
    std::optional<Json> ours;
    try {
      ours = parse(text);
    } catch (const Error& error) {
      // That is ours alone.
      const std::string_view why = error.what();
      if (why.find("stands twice") != why.npos || why.find("a NUL") != why.npos) continue;
    }
    REQUIRE(ours.has_value() == theirs.has_value());
    if (!ours) continue;
    ++taken;
    REQUIRE(nlohmann::json::parse(print_flat_json(*ours)) == *theirs);
  }
  CHECK(taken > 1500);
}
