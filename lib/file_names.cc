// SPDX-License-Identifier: Apache-2.0
#include "file_names.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <optional>

#include "error.h"
#include "unicode.h"

namespace kjudge {
namespace {

struct CharacterRange {
  char32_t first, last;
};
constexpr CharacterRange kCombining[] = {
#include "combining_characters.inc"
};

bool is_combining(char32_t character) {
  const auto* range =
      std::lower_bound(std::begin(kCombining), std::end(kCombining), character,
                       [](const CharacterRange& a, char32_t wanted) { return a.last < wanted; });
  return range != std::end(kCombining) && range->first <= character;
}

// Without width too; a name needs none of them.
bool is_joiner(char32_t character) { return character == 0x200c || character == 0x200d; }

// nullopt: not UTF-8.
std::optional<std::u32string> characters(std::string_view text) {
  std::u32string decoded;
  while (!text.empty()) {
    const auto character = take_character(text);
    if (!character) return std::nullopt;
    decoded.push_back(*character);
  }
  return decoded;
}

// Without a UTF-8 locale, which every glibc system has, letters beyond ASCII stay as they are.
void fold_case(std::u32string& text) {
  static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
  for (char32_t& c : text) {
    if (c < 0x80) {
      c = c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    } else if (unicode != locale_t{}) {
      // By way of upper case: letters with two lower cases, as sigma, have one upper case.
      c = static_cast<char32_t>(
          ::towlower_l(::towupper_l(static_cast<wint_t>(c), unicode), unicode));
    }
  }
}

std::string utf8(std::u32string_view text) {
  std::string encoded;
  for (const char32_t c : text) append_utf8(encoded, c);
  return encoded;
}

}  // namespace

bool left_out(std::string_view name) {
  if (name == "." || name == "..") return false;
  return name.starts_with('.') || name == "__pycache__" || name == "__MACOSX";
}

bool left_out_path(std::string_view path) {
  if (path.starts_with('/')) return false;
  bool left_out_part = false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == "..") return false;
    left_out_part |= left_out(part);
    begin = end + 1;
  }
  return left_out_part;
}

bool printable_name(std::string_view name) {
  const auto decoded = characters(name);
  return decoded && std::none_of(decoded->begin(), decoded->end(),
                                 [](char32_t c) { return is_hidden(c) || is_joiner(c); });
}

std::string visible_rule(std::string_view name) {
  if (name.empty()) return "is empty";
  const auto decoded = characters(name);
  if (!decoded || !std::all_of(decoded->begin(), decoded->end(), is_printable)) {
    return "is not UTF-8 or holds characters that do not print";
  }
  if (is_space(decoded->front()) || is_space(decoded->back())) return "begins or ends with a space";
  return "";
}

std::string name_rule(std::string_view name) {
  constexpr std::size_t kMost = 100;
  if (std::string broken = visible_rule(name); !broken.empty()) return broken;
  if (name.size() > kMost) return cat("is longer than ", kMost, " bytes");
  if (name.find('/') != name.npos) return "holds a \"/\"";
  const std::u32string decoded = characters(name).value();
  const auto is_other_space = [](char32_t c) { return is_space(c) && c != ' '; };
  if (std::any_of(decoded.begin(), decoded.end(), is_other_space) ||
      decoded.find(U"  ") != decoded.npos) {
    return "holds two spaces in a row or one that is not U+0020, which pages show as one";
  }
  if (std::any_of(decoded.begin(), decoded.end(), is_combining)) {
    return "holds combining characters or others that Unicode's composed form (NFC) has none of";
  }
  return "";
}

std::string folded_name(std::string_view name) {
  if (auto decoded = characters(name)) {
    fold_case(*decoded);
    return utf8(*decoded);
  }
  std::string folded(name);
  for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return folded;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto ascii = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  if (a == b) return true;
  if (a.size() != b.size() && ascii(a) && ascii(b)) return false;  // quick, for many
  return folded_name(a) == folded_name(b);
}

std::string NameRules::add(std::string_view path, Kind kind) {
  if (path.empty()) return "an empty name; give it one";
  if (path.front() == '/') return "an absolute name; names are relative to the folder handed in";
  if (!printable_name(path)) {
    return "its name is not UTF-8 or holds control characters; rename it";
  }
  if (path.size() > limits_.path_bytes) {
    return cat("its path is longer than ", limits_.path_bytes, " bytes; shorten it");
  }
  std::size_t folders = 0;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == "..")
      return "\"..\" in its name, which leads out of the folder handed in; copy it in";
    if (part.empty() || part == ".") return "its name has an empty part or \".\"; rename it";
    if (part.size() > limits_.name_bytes) {
      return cat("its name is longer than ", limits_.name_bytes, " bytes; shorten it");
    }
    if (end == path.size()) break;
    if (++folders > limits_.depth) {
      return cat("more than ", limits_.depth, " folders deep; move it up");
    }
    if (std::string broken = add_one(path.substr(0, end), Kind::folder); !broken.empty()) {
      return broken;
    }
    begin = end + 1;
  }
  return add_one(path, kind);
}

std::string NameRules::add_one(std::string_view path, Kind kind) {
  std::u32string key = characters(path).value();
  if (std::any_of(key.begin(), key.end(), is_combining)) {
    return "its name holds combining characters, which some file systems change; rename it";
  }
  fold_case(key);
  const auto [at, added] = names_.try_emplace(std::move(key), Name{std::string(path), kind});
  const Name& other = at->second;
  if (!added && other.path != path) {
    return cat("its name differs from ", other.path, " in upper and lower case alone; rename it");
  }
  if (!added && kind == Kind::file) return "the same name twice; keep one of them";
  if (!added && other.kind == Kind::file)
    return cat(other.path, " is a file and a folder; rename one");
  if (names_.size() > limits_.count) {
    return cat("more than ", limits_.count, " files and folders; hand in fewer");
  }
  return "";
}

}  // namespace kjudge
