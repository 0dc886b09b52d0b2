// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kjudge {

// What the files json_*.cc write alike: in documents and in messages about them.

// Length of the UTF-8 character at the front, 0 when there is none.
std::size_t utf8_length(std::string_view text);
// As a JSON string; bytes that are no UTF-8 become U+FFFD.
std::string in_quotes(std::string_view text);
// Always with a point or an exponent, so that it reads back as a double, and -0 with its sign.
std::string json_number(double value);

// For messages: not more than that much of what a stranger wrote.
constexpr std::size_t kShown = 60;
std::string shown(std::string_view text);
// What a member adds to the path of its object.
std::string member_path(std::string_view path, std::string_view name);

}  // namespace kjudge
