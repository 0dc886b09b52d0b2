// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "replay/evaluation.h"
#include "score/score.h"
#include "web/html.h"

namespace kjudge {

struct EvaluationSummary;
struct SubmissionSummary;

// Pieces that many pages have.

// A line of links from the front page to the page's parent.
struct Crumb {
  std::string text, address;  // address as in web/address.h
};

struct PageFrame {
  std::string title;
  std::string address;       // of the page itself
  std::vector<Crumb> above;  // below the front page
  double refresh_s = 0;      // 0: never
};
// A whole page around the contents of its <main>.
std::string framed(const PageFrame& frame, std::vector<Html> contents);

// `address` as seen from the page at `from`: "../run/ada.html".
std::string relative(std::string_view from, std::string_view address);
Html link(std::string_view from, std::string_view address, Html text);

Html person(std::string_view name);  // what somebody chose to be called
Html verdict_badge(Verdict verdict);
// With what keeps it from a rank: it does not count, is partial or unverified.
Html verdict_badges(const SubmissionSummary& submission, const EvaluationSummary& evaluation);
Html partial_badge(const VariantRequest& variant);       // of what was judged only in part
Html unverified_badge();                                 // of what was not to be kept
Html time_element(const std::string& time);              // RFC 3339
std::string times_text(double ratio);                    // "1.523×"
std::string interval_text_of(const Interval& interval);  // "1.501 to 1.540"
std::string bytes_text(double bytes);                    // "12.3 MiB"
std::string number_text(double value, int digits);       // "%.*g"; "NaN", "infinity"
std::string fixed_text(double value, int decimals);

// Rows of a table: each cell is text or elements, and what it is sorted by.
struct Cell {
  Html content;
  enum class Kind { text, number, heading } kind = Kind::text;
  std::string sort_key;  // empty: by its text
};
Cell text_cell(Html content);
Cell number_cell(Html content);
Cell number_cell(Html content, double sort_by);
Cell heading_cell(Html content);  // of its row

struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<bool> numeric;  // by column; shorter than columns: text
  std::vector<std::vector<Cell>> rows;
  bool sortable = false, filterable = false;
};
Html table_element(const Table& table);

// Terms and what they are, as <dl>.
Html facts(std::vector<std::pair<std::string, Html>> pairs);
Html section(const std::string& title, std::vector<Html> contents);
Html preformatted(std::string_view text, std::string_view label);

}  // namespace kjudge
