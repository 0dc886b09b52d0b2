// SPDX-License-Identifier: Apache-2.0
#include "web/fragments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "error.h"
#include "judge/version.h"
#include "web/site.h"

namespace kjudge {
namespace {

template <class... Values>
std::string page_format(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// A site needs nothing but its own files. A server may send the same as a header.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'";

Html head_of(const PageFrame& frame) {
  const auto asset = [&](const char* name) { return relative(frame.address, name); };
  return element(
      "head", {}, element("meta", {{"charset", "utf-8"}}),
      element("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}}),
      element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}),
      element("meta", {{"name", "referrer"}, {"content", "no-referrer"}}),
      element("title", {}, frame.title),
      element("link", {{"rel", "icon"}, HtmlAttribute::href(asset("kjudge.svg"))}),
      element("link", {{"rel", "stylesheet"}, HtmlAttribute::href(asset("kjudge.css"))}),
      element("script", {HtmlAttribute::src(asset("kjudge.js")), {"defer"}}));
}

Html header_of(const PageFrame& frame) {
  Html list("ol", {});
  const auto item = [&](const std::string& address, const std::string& text) {
    list.add(element("li", {}, link(frame.address, address, text)));
  };
  if (frame.address != "index.html") item("index.html", "Contest");
  for (const Crumb& crumb : frame.above) item(crumb.address, crumb.text);
  list.add(element("li", {{"aria-current", "page"}},
                   frame.address == "index.html" ? "Contest" : frame.title));
  return element("header", {}, element("nav", {{"aria-label", "Where this page is"}}, list));
}

}  // namespace

std::string framed(const PageFrame& frame, std::vector<Html> contents) {
  Attributes main = {{"id", "main"}};
  if (frame.refresh_s > 0) main.push_back({"data-refresh", frame.refresh_s});
  return print_page(element(
      "html", {{"lang", "en"}}, head_of(frame),
      element(
          "body", {},
          element("a", {{"class", "skip"}, HtmlAttribute::href("#main")}, "Skip to the contents"),
          header_of(frame),
          element("main", main, element("h1", {}, person(frame.title)), std::move(contents)),
          element("footer", {},
                  element("p", {}, "Made by kjudge ", kVersion, ". All times are UTC.")))));
}

std::string relative(std::string_view from, std::string_view address) {
  const auto depth = std::count(from.begin(), from.end(), '/');
  std::string path;
  for (auto i = depth; i > 0; --i) path += "../";
  return path + std::string(address);
}

Html link(std::string_view from, std::string_view address, Html text) {
  return element("a", {HtmlAttribute::href(relative(from, address))}, std::move(text));
}

Html person(std::string_view name) { return element("bdi", {}, name); }

Html verdict_badge(Verdict verdict) {
  const char* mood = verdict == Verdict::accepted      ? "good"
                     : verdict == Verdict::judge_error ? "odd"
                                                       : "bad";
  return element("span", {{"class", cat("badge ", mood)}}, name(verdict));
}

Html partial_badge(const VariantRequest& variant) {
  return element("span", {{"class", "badge odd"}}, "partial: ", request_text(variant));
}

Html unverified_badge() { return element("span", {{"class", "badge odd"}}, "unverified"); }

Html verdict_badges(const SubmissionSummary& submission, const EvaluationSummary& evaluation) {
  Html badges("span", {});
  const auto add = [&](Html badge) {
    badges.add(" ");
    badges.add(std::move(badge));
  };
  badges.add(verdict_badge(evaluation.verdict));
  if (!evaluation.invalid.empty()) {
    add(element("span", {{"class", "badge odd"}}, "does not count"));
  }
  if (!evaluation.variant.all_shapes()) add(partial_badge(evaluation.variant));
  if (!submission.stored.identity.keep) add(unverified_badge());
  return badges;
}

Html time_element(const std::string& time) {
  if (!seconds_of(time)) return time;
  return element("time", {{"datetime", time}}, time.substr(0, 10), " ", time.substr(11, 8));
}

std::string times_text(double ratio) { return page_format("%.3f×", ratio); }

std::string interval_text_of(const Interval& interval) {
  return page_format("%.3f to %.3f", interval.low, interval.high);
}

std::string bytes_text(double bytes) {
  for (const auto& [unit, size] :
       {std::pair("GiB", 0x1p30), std::pair("MiB", 0x1p20), std::pair("KiB", 0x1p10)}) {
    if (bytes >= size) return page_format("%.1f %s", bytes / size, unit);
  }
  return page_format("%.0f bytes", bytes);
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinity" : "−infinity";
  return page_format("%.*g", digits, value);
}

std::string fixed_text(double value, int decimals) { return page_format("%.*f", decimals, value); }

Cell text_cell(Html content) { return {std::move(content)}; }
Cell number_cell(Html content) { return {std::move(content), Cell::Kind::number}; }
Cell number_cell(Html content, double sort_by) {
  return {std::move(content), Cell::Kind::number, page_format("%.17g", sort_by)};
}
Cell heading_cell(Html content) { return {std::move(content), Cell::Kind::heading}; }

Html table_element(const Table& table) {
  Html head("tr", {});
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    Attributes attributes = {{"scope", "col"}};
    if (i < table.numeric.size() && table.numeric[i]) attributes.push_back({"class", "number"});
    head.add(element("th", std::move(attributes), table.columns[i]));
  }
  Html body("tbody", {});
  for (const std::vector<Cell>& row : table.rows) {
    Html line("tr", {});
    for (const Cell& cell : row) {
      Attributes attributes;
      if (cell.kind == Cell::Kind::number) attributes.push_back({"class", "number"});
      if (!cell.sort_key.empty()) attributes.push_back({"data-key", cell.sort_key});
      if (cell.kind == Cell::Kind::heading) {
        attributes.push_back({"scope", "row"});
        line.add(element("th", std::move(attributes), cell.content));
      } else {
        line.add(element("td", std::move(attributes), cell.content));
      }
    }
    body.add(std::move(line));
  }
  Attributes attributes;
  if (table.sortable) attributes.push_back({"data-sortable"});
  if (table.filterable) attributes.push_back({"data-filterable"});
  // The box scrolls where a phone is narrower than the table; the keyboard can reach it.
  return element("section", {{"class", "scroll"}, {"aria-label", table.caption}, {"tabindex", "0"}},
                 element("table", std::move(attributes), element("caption", {}, table.caption),
                         element("thead", {}, std::move(head)), std::move(body)));
}

Html facts(std::vector<std::pair<std::string, Html>> pairs) {
  Html list("dl", {});
  for (auto& [term, what] : pairs) {
    list.add(element("div", {}, element("dt", {}, term), element("dd", {}, std::move(what))));
  }
  return list;
}

Html section(const std::string& title, std::vector<Html> contents) {
  return element("section", {}, element("h2", {}, title), std::move(contents));
}

Html preformatted(std::string_view text, std::string_view label) {
  return element("section", {{"class", "scroll"}, {"aria-label", label}, {"tabindex", "0"}},
                 element("pre", {{"dir", "ltr"}}, text));
}

}  // namespace kjudge
