// SPDX-License-Identifier: Apache-2.0
#include "unicode.h"

#include <algorithm>
#include <array>

namespace kjudge {
namespace {

struct CharacterRange {
  char32_t first, last;
};
constexpr CharacterRange kHidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},
                                      {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200b},
                                      {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                                      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
constexpr CharacterRange kUnprintable[] = {
#include "unprintable_characters.inc"
};
constexpr CharacterRange kSpace[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

template <std::size_t count>
bool is_in(const CharacterRange (&ranges)[count], char32_t character) {
  const auto* range =
      std::lower_bound(std::begin(ranges), std::end(ranges), character,
                       [](const CharacterRange& a, char32_t wanted) { return a.last < wanted; });
  return range != std::end(ranges) && range->first <= character;
}

std::string escape(char32_t character) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[character >> shift & 15];
  return text;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool beyond = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::optional<char32_t> take_character(std::string_view& text) {
  const std::size_t length = utf8_length(text);
  std::optional<char32_t> character;
  if (length > 0) {
    const auto lead = static_cast<unsigned char>(text[0]);
    character = length == 1 ? lead : lead & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
      character = *character << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
    }
  }
  text.remove_prefix(std::max<std::size_t>(length, 1));
  return character;
}

std::string_view whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return back < length ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

void append_utf8(std::string& text, char32_t character) {
  if (character < 0x80) {
    text.push_back(static_cast<char>(character));
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr std::array<unsigned, 4> kLead = {0, 0xc0, 0xe0, 0xf0};
  text.push_back(
      static_cast<char>(kLead[static_cast<std::size_t>(more)] | character >> (6 * more)));
  for (int k = more - 1; k >= 0; --k) {
    text.push_back(static_cast<char>(0x80 | (character >> (6 * k) & 0x3f)));
  }
}

bool is_control(char32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0);
}

bool is_hidden(char32_t character) { return is_in(kHidden, character); }

bool is_printable(char32_t character) { return !is_in(kUnprintable, character); }

bool is_space(char32_t character) { return is_in(kSpace, character); }

bool shows_as_it_is(std::string_view text) {
  while (!text.empty()) {
    const auto character = take_character(text);
    if (!character || is_hidden(*character)) return false;
  }
  return true;
}

std::string hidden_characters_pattern() {
  std::string pattern;
  for (const auto& [first, last] : kHidden) {
    // Beyond, the two have no common way to write a character.
    if (last > 0xffff) break;
    pattern += escape(first);
    if (last > first) pattern += "-" + escape(last);
  }
  return pattern;
}

}  // namespace kjudge
