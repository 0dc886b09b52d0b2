// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kjudge {

// HTML by construction. A page is a tree of elements, whose names and attributes' names are
// literals checked by the compiler, and of text, which is data. All data is escaped when the page
// is printed, so what a contestant wrote stays text; nothing here takes markup.

// Of an element that can run nothing and fetch nothing but what HtmlAttribute::href and ::src
// allow.
class ElementName {
 public:
  template <std::size_t N>
  consteval ElementName(const char (&text)[N]) : text_(text, N - 1) {
    bool ok = N > 1;
    for (const char c : text_) ok = ok && ((c >= 'a' && c <= 'z') || (c >= '1' && c <= '6'));
    for (const char* refused : {"style", "iframe", "object", "embed", "base", "form", "template"}) {
      ok = ok && text_ != refused;
    }
    if (!ok) throw "no element of a page";
  }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

class AttributeName {
 public:
  template <std::size_t N>
  consteval AttributeName(const char (&text)[N]) : text_(text, N - 1) {
    bool ok = N > 1;
    for (const char c : text_) {
      ok = ok && ((c >= 'a' && c <= 'z') || c == '-' || c == 'B' || (c >= '0' && c <= '9'));
    }
    // Handlers and styles are what the pages' Content-Security-Policy forbids; addresses have
    // functions of their own.
    for (const char* refused : {"style", "href", "src", "srcset", "srcdoc", "action", "ping"}) {
      ok = ok && text_ != refused;
    }
    if (!ok || text_.starts_with("on")) throw "no attribute of a page";
  }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

class HtmlAttribute {
 public:
  HtmlAttribute(AttributeName name) : name_(name.text()), flag_(true) {}
  HtmlAttribute(AttributeName name, std::string_view value) : name_(name.text()), value_(value) {}
  HtmlAttribute(AttributeName name, const std::string& value) : name_(name.text()), value_(value) {}
  HtmlAttribute(AttributeName name, const char* value) : name_(name.text()), value_(value) {}
  HtmlAttribute(AttributeName name, int value);
  HtmlAttribute(AttributeName name, double value);  // to 6 digits
  // An address within the site: letters, digits and ". _ ~ - / #". Fault::bug for any other.
  static HtmlAttribute href(std::string_view address);
  static HtmlAttribute src(std::string_view address);

  void print(std::string& page) const;

 private:
  struct Address {
    std::string_view text;
  };
  HtmlAttribute(std::string_view name, Address address);
  std::string_view name_;
  std::string value_;
  bool flag_ = false;
};
using Attributes = std::vector<HtmlAttribute>;

class Html {
 public:
  Html() = default;  // nothing
  Html(std::string_view text) : text_(text) {}
  Html(const std::string& text) : text_(text) {}
  Html(const char* text) : text_(text) {}
  Html(ElementName name, Attributes attributes)
      : name_(name.text()), attributes_(std::move(attributes)) {}

  void add(Html child) { children_.push_back(std::move(child)); }
  void add(std::vector<Html> children);

  std::string print() const;

 private:
  void print(std::string& page) const;

  std::string_view name_;  // empty: text, then children
  std::string text_;
  Attributes attributes_;
  std::vector<Html> children_;
};

// element("p", {{"class", "note"}}, "by ", element("b", {}, name)). Children are text, elements and
// vectors of elements.
template <class... Children>
Html element(ElementName name, Attributes attributes, Children&&... children) {
  Html made(name, std::move(attributes));
  (made.add(std::forward<Children>(children)), ...);
  return made;
}

// "<!DOCTYPE html>" and the page.
std::string print_page(const Html& page);

// `text` as a page shows it, not yet escaped: valid UTF-8 in which nothing is invisible or turns
// the direction of what follows. Control characters become their pictures ("␛"), characters that
// order or hide text their numbers ("[U+202E]"), bytes that are no UTF-8 U+FFFD. Line ends and tabs
// stay.
std::string visible_text(std::string_view text);

}  // namespace kjudge
