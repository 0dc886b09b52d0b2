// SPDX-License-Identifier: Apache-2.0
#include "json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "error.h"
#include "unicode.h"

namespace kjudge {
namespace {

bool plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

// As \u202e; what lies beyond U+FFFF as a pair of halves.
void append_escape(std::string& out, char32_t character) {
  if (character > 0xffff) {
    append_escape(out, 0xd800 + ((character - 0x10000) >> 10));
    append_escape(out, 0xdc00 + (character & 0x3ff));
    return;
  }
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[character >> shift & 15];
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::string_view before = text;
    const auto character = take_character(text);
    if (!character) {
      out += "\xef\xbf\xbd";  // U+FFFD
    } else if (*character == '"' || *character == '\\') {
      out += '\\';
      out += before[0];
    } else if (*character == '\n') {
      out += "\\n";
    } else if (*character == '\t') {
      out += "\\t";
    } else if (is_hidden(*character)) {
      append_escape(out, *character);
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out + '"';
}

std::string json_number(double value) {
  KJ_CHECK(std::isfinite(value));
  std::array<char, 32> digits;
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-5 && size < 1e15);
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string text(digits.data(), end.ptr);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string shown(std::string_view text) {
  if (text.size() <= kShown) return in_quotes(text);
  return in_quotes(whole_characters(text.substr(0, kShown))) + "...";
}

std::string member_path(std::string_view path, std::string_view name) {
  if (!plain_name(name) || name.size() > kShown) return cat("[", shown(name), "]");
  return cat(path.empty() ? "" : ".", name);
}

}  // namespace kjudge
