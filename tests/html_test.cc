// SPDX-License-Identifier: Apache-2.0
#include "web/html.h"

#include <doctest/doctest.h>

#include <limits>

#include "error.h"

using namespace kjudge;

TEST_CASE("text and values of attributes are escaped, names are the program's") {
  const std::string hostile = "</p><script>alert('1')</script>\" onclick=\"x&lt;";
  const Html page = element("p", {{"title", hostile}}, hostile, element("b", {}, "&amp;"));
  const std::string escaped =
      "&lt;/p&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onclick=&quot;x&amp;lt;";
  CHECK(page.print() == "<p title=\"" + escaped + "\">" + escaped + "<b>&amp;amp;</b></p>\n");
}

TEST_CASE("elements nest, flags have no value, void elements no end") {
  const std::vector<Html> items = {element("li", {}, "1"), element("li", {}, "2")};
  CHECK(element("ul", {}, items).print() == "<ul><li>1</li>\n<li>2</li>\n</ul>\n");
  CHECK(element("details", {{"open"}}, "x").print() == "<details open>x</details>\n");
  CHECK(element("p", {}, "a", element("br", {}), "b").print() == "<p>a<br>b</p>\n");
  CHECK(element("line", {{"x1", 1.5}, {"y1", 1e-7}, {"x2", 3}}).print() ==
        "<line x1=\"1.5\" y1=\"1e-07\" x2=\"3\"></line>\n");
  CHECK(Html().print().empty());
  // The parser takes one line end away.
  CHECK(element("pre", {}, "\n\nx").print() == "<pre>\n\n\nx</pre>\n");
  CHECK(print_page(element("p", {})) == "<!DOCTYPE html>\n<p></p>\n");
}

TEST_CASE("what cannot be in a page is a bug of the program") {
  CHECK_THROWS_AS(element("script", {}, "alert(1)").print(), Error);
  CHECK_THROWS_AS(element("br", {}, "x").print(), Error);
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(element("line", {{"x1", infinite}}), Error);
}

TEST_CASE("addresses stay within the site") {
  for (const char* address :
       {"../run/a.html", "kjudge.css", "#main", "run/~0f.html", "a-b_c.1.csv"}) {
    CAPTURE(address);
    CHECK_NOTHROW(HtmlAttribute::href(address));
  }
  for (const char* address : {"", "/etc", "//example.org/x", "javascript:alert(1)", "https://a.b",
                              "a b", "data:text/html,x", "a\"b", "a?b", "\\\\a", "a%2e", "é"}) {
    CAPTURE(address);
    CHECK_THROWS_AS(HtmlAttribute::href(address), Error);
    CHECK_THROWS_AS(HtmlAttribute::src(address), Error);
  }
}

TEST_CASE("text that would hide or turn other text is made visible") {
  CHECK(visible_text("a\tb\nc\r\nd") == "a\tb\nc\nd");
  CHECK(visible_text("\x1b[31mred\r\b") == "␛[31mred␍␈");
  CHECK(visible_text(std::string("a\0b", 3)) == "a␀b");
  CHECK(visible_text("\x7f\xc2\x9b") == "␡\xef\xbf\xbd");
  CHECK(visible_text("\u202egnp.exe\u2066\u200f\u061c") ==
        "[U+202E]gnp.exe[U+2066][U+200F][U+061C]");
  CHECK(visible_text("a\u200bb\ufeff\u00ad\u2028\U000E0041") ==
        "a[U+200B]b[U+FEFF][U+00AD][U+2028][U+E0041]");
  CHECK(visible_text("é 漢 אב 👩\u200d🚀") == "é 漢 אב 👩\u200d🚀");
}

TEST_CASE("bytes that are no UTF-8 become one replacement character each") {
  const std::string bad = "\xef\xbf\xbd";
  CHECK(visible_text("\xff") == bad);
  CHECK(visible_text("\xc3") == bad);
  CHECK(visible_text("\xc3<") == bad + "<");
  CHECK(visible_text("\xe2\x82<b>") == bad + bad + "<b>");
  CHECK(visible_text("\xc0\xbc") == bad + bad);            // "<" in two bytes
  CHECK(visible_text("\xe0\x80\xbc") == bad + bad + bad);  // in three
  CHECK(visible_text("\xed\xa0\x80") == bad + bad + bad);  // half of a pair
  CHECK(visible_text("\xf4\x90\x80\x80") == bad + bad + bad + bad);
  CHECK(visible_text("\uffff\ufdd0") == bad + bad);  // no characters
  CHECK(visible_text("\xf0\x9f\x9a\x80") == "🚀");
}
