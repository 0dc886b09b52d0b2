// SPDX-License-Identifier: Apache-2.0
#include "web/html.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "error.h"
#include "unicode.h"

namespace kjudge {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_void(std::string_view name) {
  return is_one_of(name, {"br", "hr", "img", "input", "link", "meta", "wbr"});
}

// After these a page may have a line end that shows nothing, so that its source can be read.
bool ends_line(std::string_view name) {
  return is_one_of(name,
                   {"html",    "head",   "body",  "meta", "link",    "title",    "script",
                    "header",  "main",   "nav",   "ol",   "ul",      "li",       "footer",
                    "section", "h1",     "h2",    "h3",   "p",       "table",    "caption",
                    "thead",   "tbody",  "tr",    "dl",   "div",     "details",  "summary",
                    "pre",     "figure", "svg",   "g",    "path",    "circle",   "rect",
                    "line",    "text",   "title", "desc", "article", "noscript", "figcaption"});
}

void append_escaped(std::string& page, std::string_view text) {
  for (const char c : visible_text(text)) {
    switch (c) {
      case '&':
        page += "&amp;";
        break;
      case '<':
        page += "&lt;";
        break;
      case '>':
        page += "&gt;";
        break;
      case '"':
        page += "&quot;";
        break;
      case '\'':
        page += "&#39;";
        break;
      default:
        page += c;
    }
  }
}

constexpr char32_t kReplacement = 0xfffd;

}  // namespace

std::string visible_text(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const char32_t c = take_character(text).value_or(kReplacement);
    if (c == '\n' || c == '\t') {
      shown += static_cast<char>(c);
    } else if (c == '\r' && text.starts_with('\n')) {
      continue;  // a line end of Windows
    } else if (c < 0x20) {
      append_utf8(shown, 0x2400 + c);
    } else if (c == 0x7f) {
      append_utf8(shown, 0x2421);
    } else if ((c >= 0x80 && c < 0xa0) || (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef)) {
      append_utf8(shown, kReplacement);  // C1 controls and what is no character in HTML
    } else if (is_hidden(c)) {
      std::array<char, 16> number{};
      std::snprintf(number.data(), number.size(), "[U+%04X]", static_cast<unsigned>(c));
      shown += number.data();
    } else {
      append_utf8(shown, c);
    }
  }
  return shown;
}

HtmlAttribute::HtmlAttribute(AttributeName name, int value)
    : name_(name.text()), value_(std::to_string(value)) {}

HtmlAttribute::HtmlAttribute(AttributeName name, double value) : name_(name.text()) {
  KJ_CHECK(std::isfinite(value));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  value_ = text.data();
}

HtmlAttribute::HtmlAttribute(std::string_view name, Address given)
    : name_(name), value_(given.text) {
  const std::string_view address = given.text;
  const bool within = std::all_of(address.begin(), address.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._~-/#").find(static_cast<char>(c)) != std::string_view::npos;
  });
  KJ_CHECK(within && !address.empty() && address.front() != '/');
}

HtmlAttribute HtmlAttribute::href(std::string_view address) {
  return HtmlAttribute("href", Address{address});
}

HtmlAttribute HtmlAttribute::src(std::string_view address) {
  return HtmlAttribute("src", Address{address});
}

void HtmlAttribute::print(std::string& page) const {
  page += ' ';
  page += name_;
  if (flag_) return;
  page += "=\"";
  append_escaped(page, value_);
  page += '"';
}

void Html::add(std::vector<Html> children) {
  for (Html& child : children) children_.push_back(std::move(child));
}

void Html::print(std::string& page) const {
  if (!name_.empty()) {
    page += '<';
    page += name_;
    for (const HtmlAttribute& attribute : attributes_) attribute.print(page);
    page += '>';
  }
  // The parser drops a line end that a <pre> begins with.
  if (name_ == "pre") page += '\n';
  KJ_CHECK(name_ != "script" || children_.empty());
  append_escaped(page, text_);
  for (const Html& child : children_) child.print(page);
  if (is_void(name_)) {
    KJ_CHECK(children_.empty());
  } else if (!name_.empty()) {
    page += "</";
    page += name_;
    page += '>';
  }
  if (ends_line(name_)) page += '\n';
}

std::string Html::print() const {
  std::string page;
  print(page);
  return page;
}

std::string print_page(const Html& page) { return "<!DOCTYPE html>\n" + page.print(); }

}  // namespace kjudge
