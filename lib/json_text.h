// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kjudge {

// What the files json_*.cc write alike: in documents and in messages about them.

// ASCII that a JSON string holds without an escape.
constexpr bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }
// As a JSON string; hidden characters (unicode.h) are escaped, bytes that are no UTF-8 become
// U+FFFD.
std::string in_quotes(std::string_view text);
// Always with a point or an exponent, so that it reads back as a double, and -0 with its sign.
std::string json_number(double value);

// For messages: not more than that much of what a stranger wrote.
constexpr std::size_t kShown = 60;
std::string shown(std::string_view text);
// What a member adds to the path of its object.
std::string member_path(std::string_view path, std::string_view name);

}  // namespace kjudge
