// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "error.h"

namespace kjudge {

// JSON values, read and printed. What a format holds is said by a table of fields: json_fields.h.

struct JsonMember;

// A value. Objects keep the order of their members.
struct Json {
  using List = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Object> value;

  bool operator==(const Json&) const;
};

struct JsonMember {
  std::string name;
  Json value;
  bool operator==(const JsonMember&) const = default;
};

inline bool Json::operator==(const Json& other) const { return value == other.value; }

struct JsonLimits {
  int depth = 32;
  std::size_t values = 4'000'000;
};

// Throws `fault`, naming `file`, unless `text` is one JSON value within the limits.
Json parse_json(std::string_view text, std::string_view file, Fault fault,
                const JsonLimits& limits = {});

// Two-space indentation; what fits into 120 columns is on one line; shortest numbers that read back
// the same; hidden characters (unicode.h) are escaped; bytes that are no UTF-8 become U+FFFD. Ends
// with a newline. The same value, the same bytes. Numbers must be finite (Fault::bug).
std::string print_json(const Json& value);
// The same on one line, without an end of line.
std::string print_flat_json(const Json& value);

// The value as messages show it: a part of what is long.
std::string describe(const Json& value);

// Prints a document piece by piece, so that it is never in memory whole: what is opened is spread
// out, all else as print_json() does.
class JsonPrinter {
 public:
  explicit JsonPrinter(std::ostream& out) : out_(out) {}

  void open_object() { open('{'); }
  void open_list() { open('['); }
  void close();                      // what was opened last; the document's own ends the last line
  void name(std::string_view name);  // of the member that follows
  void value(const Json& value);     // a member's, an item or the document

 private:
  struct Open {
    char bracket;
    bool empty = true;
  };
  void open(char bracket);
  void place();  // where the next item stands

  std::ostream& out_;
  std::vector<Open> open_;
  std::size_t name_columns_ = 0;  // of the name that is on the line already
};

}  // namespace kjudge
