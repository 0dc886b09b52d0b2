// SPDX-License-Identifier: Apache-2.0
#include "json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "error.h"

namespace kjudge {
namespace {

bool plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
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

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      out += cat("\\u00", std::string(1, kDigits[static_cast<unsigned char>(c) >> 4]),
                 std::string(1, kDigits[static_cast<unsigned char>(c) & 15]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
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
  std::size_t cut = kShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return in_quotes(text.substr(0, cut)) + "...";
}

std::string member_path(std::string_view path, std::string_view name) {
  if (!plain_name(name) || name.size() > kShown) return cat("[", shown(name), "]");
  return cat(path.empty() ? "" : ".", name);
}

}  // namespace kjudge
