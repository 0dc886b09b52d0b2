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

enum class Color { red, green };

struct Point {
  double x = 0, y = 0;
};
struct Thing {
  std::string label;
  int count = 3;
  bool on = false;
  Color color = Color::red;
  double ratio = 0, wild = 0;
  std::optional<double> limit;
  std::vector<Point> points;
  std::vector<std::pair<std::string, std::int64_t>> dims;
};

FieldTable<Point> point_table() {
  return FieldTable<Point>({required("x", &Point::x, number_kind(), "across"),
                            optional("y", &Point::y, number_kind(), "up")});
}

const FieldTable<Thing>& thing_table() {
  static const FieldTable<Thing> table(
      {format_field<Thing>("thing/1"),
       required("label", &Thing::label, matching_kind("small letters", "[a-z]+"), "a name"),
       optional("count", &Thing::count, integer_kind(1, 9), "how many"),
       optional("on", &Thing::on, boolean_kind(), "whether"),
       optional("color", &Thing::color,
                word_kind<Color>({{"red", Color::red}, {"green", Color::green}}), "paint"),
       optional("ratio", &Thing::ratio, number_kind(0, 1), "share"),
       optional("wild", &Thing::wild, any_number_kind(), "anything"),
       optional("limit", &Thing::limit, number_kind(0), "at most"),
       derived_field<Thing, std::int64_t>(
           "twice", [](const Thing& thing) { return std::int64_t{2} * thing.count; },
           integer_kind<std::int64_t>(0, 100), "derived"),
       optional("points", &Thing::points, list_kind(object_kind(point_table()), 0, 2), "where"),
       optional("dims", &Thing::dims,
                map_kind(matching_kind("a name of small letters", "[a-z]+"),
                         integer_kind<std::int64_t>(1, std::int64_t{1} << 40)),
                "sizes")});
  return table;
}

Thing read_thing(std::string_view text) {
  const Json json = parse(text);
  return thing_table().read(JsonCursor(json, "f.json", Fault::malformed));
}
std::string thing_error(std::string_view text) {
  return json_faults::message_of([&] { read_thing(text); });
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
  const std::string found = "expected a number up to 1.7e308, found " + huge.substr(0, 60) + "...";
  CHECK(error_of(huge) == "f.json: " + found);
  CHECK(error_of(cat("{\"shapes\": [{\"dims\": {\"rows\": ", huge, "}}]}")) ==
        "f.json: shapes[0].dims.rows: " + found);
  CHECK(
      error_of(cat("{\"a\": [1, 2, -", huge, "]}")).starts_with("f.json: a[2]: expected a number"));
  CHECK(error_of("{\"a\": 1e999}") == "f.json: a: expected a number up to 1.7e308, found 1e999");
  CHECK(parse("1e-999") == Json{0.0});
}

TEST_CASE("messages show no more than a part of what is too long") {
  const std::string name(100'000, 'n');
  const std::string part = cat("\"", std::string(60, 'n'), "\"...");
  CHECK(error_of(cat("{\"", name, "\": 1, \"", name, "\": 2}")) ==
        cat("f.json: the name ", part, " stands twice in the same object"));
  CHECK(
      error_of(cat("{\"", name, "\": 1e999}")).starts_with(cat("f.json: [", part, "]: expected")));
  CHECK(thing_error(cat("{\"format\": \"thing/1\", \"label\": \"a\", \"", name, "\": 1}")) ==
        cat("f.json: [", part,
            "]: unknown field; the fields here are format, label, count, on, "
            "color, ratio, wild, limit, twice, points, dims"));
  CHECK(thing_error(
            cat("{\"format\": \"thing/1\", \"label\": \"a\", \"dims\": {\"", name, "_\": 1}}"))
            .size() < 400);
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

TEST_CASE("a table reads, fills in defaults and writes back the same") {
  const std::string text =
      "{\"format\": \"thing/1\", \"label\": \"box\", \"color\": \"green\", \"wild\": \"-infinity\","
      " \"limit\": 4, \"points\": [{\"x\": 1}, {\"x\": -0.0, \"y\": 2}], \"dims\": {\"rows\": 2,"
      " \"columns\": 3}}";
  const Thing thing = read_thing(text);
  CHECK(thing.label == "box");
  CHECK(thing.count == 3);
  CHECK(thing.color == Color::green);
  CHECK(thing.wild == -HUGE_VAL);
  CHECK(thing.limit == 4);
  CHECK(thing.points.size() == 2);
  CHECK(std::signbit(thing.points[1].x));
  CHECK(thing.dims.at(0).first == "rows");
  const std::string written = print_json(Json{thing_table().write(thing)});
  CHECK(written ==
        "{\n  \"format\": \"thing/1\",\n  \"label\": \"box\",\n  \"color\": \"green\",\n"
        "  \"wild\": \"-infinity\",\n  \"limit\": 4.0,\n  \"twice\": 6,\n"
        "  \"points\": [{\"x\": 1.0}, {\"x\": -0.0, \"y\": 2.0}],\n"
        "  \"dims\": {\"rows\": 2, \"columns\": 3}\n}\n");
  CHECK(print_json(Json{thing_table().write(read_thing(written))}) == written);
}

TEST_CASE("errors name file, field, what was expected and what was found") {
  const auto with = [](std::string_view more) {
    return thing_error(cat("{\"format\": \"thing/1\", \"label\": \"a\", ", more, "}"));
  };
  CHECK(with("\"dims\": {\"rows\": \"many\"}") ==
        "f.json: dims.rows: expected an integer from 1 to 2^40, found \"many\"");
  CHECK(with("\"dims\": {\"Rows\": 1}") ==
        "f.json: dims.Rows: expected a name of small letters, found the name \"Rows\"");
  CHECK(with("\"dims\": {\"a b\\\"\": 1}").starts_with("f.json: dims[\"a b\\\"\"]: "));
  CHECK(with("\"count\": 10") == "f.json: count: expected an integer from 1 to 9, found 10");
  CHECK(with("\"count\": 2.0") == "f.json: count: expected an integer from 1 to 9, found 2.0");
  CHECK(with("\"ratio\": -0.5") == "f.json: ratio: expected a number from 0 to 1, found -0.5");
  CHECK(with("\"limit\": -1") == "f.json: limit: expected a number of at least 0, found -1");
  CHECK(with("\"wild\": \"NaN\"") ==
        "f.json: wild: expected \"infinity\", \"-infinity\" or \"nan\", found \"NaN\"");
  CHECK(with("\"on\": 1") == "f.json: on: expected true or false, found 1");
  CHECK(with("\"color\": \"blue\"") ==
        "f.json: color: expected \"red\" or \"green\", found \"blue\"");
  CHECK(with("\"points\": [{\"x\": 1}, {\"x\": null}]") ==
        "f.json: points[1].x: expected a number, found null");
  CHECK(with("\"points\": [{}]") == "f.json: points[0]: field \"x\" is missing; expected a number");
  CHECK(with("\"points\": [{\"x\": 1, \"z\": 1}]") ==
        "f.json: points[0].z: unknown field; the fields here are x, y");
  CHECK(with("\"points\": [{\"x\":1},{\"x\":1},{\"x\":1}]") ==
        "f.json: points: expected a list of at most 2 items, found 3");
  CHECK(with("\"points\": {}") ==
        "f.json: points: expected a list of at most 2 items, found an object");
  CHECK(thing_error("[]") == "f.json: expected an object, found a list");
  CHECK(thing_error("{\"format\": \"thing/1\"}") ==
        "f.json: field \"label\" is missing; expected small letters");
  for (std::string_view label : {"", "a\\u0000", "a\\n", "A"}) {
    CHECK(thing_error(cat("{\"format\": \"thing/1\", \"label\": \"", label, "\"}"))
              .starts_with("f.json: label: expected small letters, found "));
  }
  const auto label = [&](std::size_t size) {
    return thing_error(
        cat("{\"format\": \"thing/1\", \"label\": \"", std::string(size, 'z'), "\"}"));
  };
  CHECK(label(200) == "no error");
  CHECK(label(201) ==
        "f.json: label: expected small letters, at most 200 bytes, found a string of 201 bytes");
  const std::string long_label(100, 'Z');
  CHECK(thing_error(cat("{\"format\": \"thing/1\", \"label\": \"", long_label, "\"}")) ==
        cat("f.json: label: expected small letters, found \"", std::string(60, 'Z'), "\"..."));
}

TEST_CASE("another version of a format is told as such, whatever else is in the file") {
  CHECK(thing_error("{\"new\": 1, \"format\": \"thing/2\"}") ==
        "f.json: format: expected \"thing/1\", found \"thing/2\"");
  CHECK(thing_error("{\"new\": 1}") == "f.json: field \"format\" is missing; expected \"thing/1\"");
}

TEST_CASE("every field of a table refuses every wrong kind") {
  const Json json = parse(
      "{\"format\": \"thing/1\", \"label\": \"a\", \"count\": 2, \"on\": true, \"color\": \"red\","
      " \"ratio\": 0.5, \"wild\": 1, \"limit\": 1.5, \"points\": [{\"x\": 1, \"y\": 2}],"
      " \"dims\": {\"a\": 1}}");
  const int tried =
      json_faults::try_every_fault(json, thing_table().schema(), read_thing, {.file = "f.json"});
  CHECK(tried > 100);
}

TEST_CASE("a table gives its schema") {
  const std::string schema = print_json(thing_table().schema());
  CHECK_NOTHROW(parse(schema));
  for (std::string_view part :
       {"\"required\": [\"format\", \"label\"]", "\"additionalProperties\": false",
        "\"count\": {\"description\": \"how many\", \"type\": \"integer\", \"minimum\": 1, "
        "\"maximum\": 9, \"default\": 3}",
        "\"enum\": [\"red\", \"green\"]", "\"pattern\": \"^([a-z]+)$\""}) {
    CAPTURE(part);
    CHECK(schema.find(part) != std::string::npos);
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
