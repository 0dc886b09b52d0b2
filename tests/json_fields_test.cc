// SPDX-License-Identifier: Apache-2.0
#include "json_fields.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json_faults.h"

using namespace kjudge;

namespace {

Json parse(std::string_view text) { return parse_json(text, "f.json", Fault::malformed); }

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

TEST_CASE("messages show no more than a part of a name that is too long") {
  const std::string name(100'000, 'n');
  const std::string part = cat("\"", std::string(60, 'n'), "\"...");
  CHECK(thing_error(cat("{\"format\": \"thing/1\", \"label\": \"a\", \"", name, "\": 1}")) ==
        cat("f.json: [", part,
            "]: unknown field; the fields here are format, label, count, on, "
            "color, ratio, wild, limit, twice, points, dims"));
  CHECK(thing_error(
            cat("{\"format\": \"thing/1\", \"label\": \"a\", \"dims\": {\"", name, "_\": 1}}"))
            .size() < 400);
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
