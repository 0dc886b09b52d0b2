// SPDX-License-Identifier: Apache-2.0
#include "unicode.h"

#include <doctest/doctest.h>

#include "error.h"
#include "json_kinds.h"
#include "judge/report.h"

using namespace kjudge;

TEST_CASE("unicode: every character is written and taken again, and nothing else is one") {
  for (char32_t c = 0; c <= 0x110000; c += c < 0x3000 ? 1 : 97) {
    std::string text;
    append_utf8(text, c);
    const bool is_one = c < 0xd800 || (c > 0xdfff && c < 0x110000);
    std::string_view rest = text;
    REQUIRE(utf8_length(text) == (is_one ? text.size() : 0));
    REQUIRE(take_character(rest) == (is_one ? std::optional(c) : std::nullopt));
    if (is_one) REQUIRE(rest.empty());
    // Cut anywhere it is none.
    for (std::size_t size = 0; size < text.size(); ++size) {
      REQUIRE(utf8_length(std::string_view(text).substr(0, size)) == 0);
      REQUIRE(whole_characters("ab" + text.substr(0, size)) == "ab");
    }
    if (is_one) REQUIRE(whole_characters("ab" + text) == "ab" + text);
  }
  for (std::string_view none :
       {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xff", "\xf8\x88\x80\x80\x80"}) {
    CHECK(utf8_length(none) == 0);
  }
}

TEST_CASE("unicode: texts that people are shown hide nothing and turn nothing round") {
  for (const char* shown :
       {"", "Softmax", "\u00e9 \u6f22 \u05d0\u05d1", "\U0001f469\u200d\U0001f680", "a b"}) {
    CAPTURE(shown);
    CHECK(shows_as_it_is(shown));
  }
  for (const char* hidden :
       {"\n",     "\t",     "\x1b[2J", "\x7f",   "\u009b",     "\u00ad", "\u061c", "\u180e",
        "\u200b", "\u200e", "\u200f",  "\u2028", "\u2029",     "\u202a", "\u202e", "\u2060",
        "\u2066", "\u2069", "\ufeff",  "\ufff9", "\U000e0041", "\xff",   "\xc3"}) {
    CAPTURE(hidden);
    CHECK_FALSE(shows_as_it_is(cat("Soft", hidden, "max")));
  }
}

TEST_CASE("titles and other texts that people are shown refuse what orders or hides text") {
  const auto message = [](const Kind<std::string>& kind, const std::string& text) -> std::string {
    const Json json{text};
    try {
      kind.read(JsonCursor(json, "f.json", Fault::malformed));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(line_kind(1, 200), "Softmax\u202excod") ==
        "f.json: expected one line of visible text, 1 to 200 bytes, found \"Softmax\\u202excod\"");
  CHECK(message(line_kind(), "\U000e0041") ==
        "f.json: expected one line of visible text, at most 1000 bytes, found \"\\udb40\\udc41\"");
  CHECK(message(line_kind(), "\u00e9 \U0001f469\u200d\U0001f680") == "");
}

TEST_CASE("JSON escapes hidden characters, which read back the same") {
  for (const char* text : {"a\u202eb", "\u009b", "\U000e0041", "\u00ad", "\x7f", "\u200d"}) {
    const std::string printed = print_flat_json(Json{std::string(text)});
    CHECK(parse_json(printed, "f", Fault::bug) == Json{std::string(text)});
    CHECK(shows_as_it_is(printed));
  }
  CHECK(print_flat_json(Json{std::string("a\u202e\u00e9")}) == "\"a\\u202e\u00e9\"");
}

TEST_CASE("messages keep terminals as they are, and are of bounded length") {
  CHECK(printable("a\x1b[2J\u202e\u009b\xff\n\tb\u00e9") == "a?[2J???\n\tb\u00e9");
  CHECK(message_text("short\nlines\n") == "short\n  lines\n");
  const std::string fits(kMessageBytes, 'x');
  CHECK(message_text(fits) == fits);
  const std::string cut =
      message_text("--device " + std::string(100'000, 'v') + ": expected\nnext");
  CHECK(cut.starts_with("--device vvv"));
  CHECK(cut.find("[... 99019 bytes left out ...]") != cut.npos);
  CHECK(cut.ends_with("vvv: expected\n  next"));
  // Not within a character.
  for (const char* start : {"", "a", "ab", "abc"}) {
    std::string text = start;
    while (text.size() < 3000) text += "\U0001f680";
    CHECK(shows_as_it_is(message_text(text)));
    CHECK(message_text(text).find('?') == std::string::npos);
  }
}
