// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kjudge {

// Bytes of the UTF-8 character at the front; 0: there is none.
std::size_t utf8_length(std::string_view text);

// Takes the character off the front of `text`, which is not empty; a byte, and nullopt, where there
// is none.
std::optional<char32_t> take_character(std::string_view& text);

// `text` without the first bytes of a character that its end cuts.
std::string_view whole_characters(std::string_view text);

void append_utf8(std::string& text, char32_t character);

bool is_control(char32_t character);  // C0, delete, C1
// Control characters, and all that orders or hides the text around it: marks and overrides of
// direction, other line ends, what has no width. Not the two joiners (U+200C, U+200D), which
// scripts and emoji need.
bool is_hidden(char32_t character);
// Whether a character shows, by itself, on any machine: none that is hidden, joins or chooses a
// variant of another, is a letter with a blank glyph, or is not assigned in Unicode 14. Spaces are.
bool is_printable(char32_t character);
bool is_space(char32_t character);  // Unicode's White_Space

// The one rule for texts of a line that people are shown: UTF-8 without hidden characters. Names
// (file_names.h) keep to more.
bool shows_as_it_is(std::string_view text);

// The hidden characters below U+10000, for between the brackets of a regular expression that means
// the same in a JSON Schema and in Python.
std::string hidden_characters_pattern();

}  // namespace kjudge
