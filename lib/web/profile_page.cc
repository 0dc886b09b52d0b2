// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "error.h"
#include "judge/report.h"
#include "web/fragments.h"
#include "web/metrics.h"
#include "web/pages.h"

namespace kjudge {
namespace {

// A page with more would not open on a phone; all are in the CSV.
constexpr std::size_t kMostMetricRows = 6000;

std::string csv_field(std::string_view text) {
  // A spreadsheet takes a cell that begins like this for a formula.
  std::string field = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
    field += '\'';
  for (const char c : visible_text(text)) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

std::string raw_value(const Metric& metric) {
  if (const auto* text = std::get_if<std::string>(&metric.value.value)) return csv_field(*text);
  return print_flat_json(metric.value);
}

Html metric_field(const Metric& metric) {
  Html field("details", {{"class", "metric"}});
  field.add(element("summary", {}, element("code", {}, metric.name), " ",
                    element("span", {{"class", "value"}}, metric_text(metric))));
  const std::string meaning = explain_metric(metric.name);
  field.add(element(
      "p", {},
      meaning.empty() ? "Not explained here; see NVIDIA's Kernel Profiling Guide." : meaning,
      ". Exactly ", print_flat_json(metric.value), metric.unit.empty() ? "" : " ", metric.unit));
  return field;
}

std::size_t metric_count(const Profile& profile) {
  std::size_t count = 0;
  for (const KernelProfile& kernel : profile.kernels) count += kernel.metrics.size();
  return count;
}

Html metric_table_of(const Profile& profile) {
  Table table;
  table.caption = "All metrics of all kernels";
  table.columns = {"#", "Metric", "Value", "Unit", "Kernel"};
  table.numeric = {true, false, true, false, false};
  table.sortable = table.filterable = true;
  for (std::size_t k = 0; k < profile.kernels.size(); ++k) {
    for (const Metric& metric : profile.kernels[k].metrics) {
      if (table.rows.size() == kMostMetricRows) return table_element(table);
      Metric bare = metric;
      bare.unit.clear();
      const auto value = metric_value(metric);
      table.rows.push_back(
          {number_cell(std::to_string(k + 1)), heading_cell(metric.name),
           value ? number_cell(metric_text(bare), *value) : number_cell(metric_text(bare)),
           text_cell(metric.unit), text_cell(profile.kernels[k].name)});
    }
  }
  return table_element(table);
}

const Metric* find_metric(const KernelProfile& kernel, const std::string& metric_name) {
  for (const Metric& metric : kernel.metrics) {
    if (metric.name == metric_name) return &metric;
  }
  return nullptr;
}

std::string compared_name(const ComparedEvaluation& side) {
  return cat(evaluation_name(side.key.submission, side.key.evaluation), ", ", side.run);
}

// "+12.3 %" of the left.
std::string change_text(double left, double right) {
  if (left == 0 || !std::isfinite(right / left)) return "–";
  const double percent = 100 * (right / left - 1);
  return cat(percent > 0 ? "+" : "", fixed_text(percent, 1), " %");
}

Html compared_shapes(const ComparedEvaluation& left, const ComparedEvaluation& right) {
  const Score &left_score = left.score, &right_score = right.score;
  Table table;
  table.caption = "Shapes side by side";
  table.columns = {"Shape",
                   cat("Speedup of ", compared_name(left)),
                   "Interval",
                   cat("Speedup of ", compared_name(right)),
                   "Interval of the second",
                   "Change"};
  table.numeric = {false, true, true, true, true, true};
  table.sortable = true;
  const auto add = [&](const std::string& shape, double a, const Interval& a_interval, double b,
                       const Interval& b_interval) {
    const bool apart = a_interval.high < b_interval.low || b_interval.high < a_interval.low;
    table.rows.push_back(
        {heading_cell(shape), number_cell(times_text(a), a),
         number_cell(interval_text_of(a_interval), a_interval.low), number_cell(times_text(b), b),
         number_cell(interval_text_of(b_interval), b_interval.low),
         number_cell(cat(change_text(a, b), apart ? "" : ", intervals overlap"), b / a)});
  };
  for (const ShapeScore& a : left_score.shapes) {
    for (const ShapeScore& b : right_score.shapes) {
      if (a.name == b.name) add(a.name, a.speedup, a.interval, b.speedup, b.interval);
    }
  }
  if (left_score.counts && right_score.counts &&
      left.evaluation.variant == right.evaluation.variant) {
    add("all", left_score.speedup, left_score.interval, right_score.speedup, right_score.interval);
  }
  return table.rows.empty() ? element("p", {}, "They have no shape with times in common.")
                            : table_element(table);
}

// Kernel by kernel in the order in which they ran.
Html compared_profiles(const ComparedEvaluation& left, const ComparedEvaluation& right,
                       const Profile& a, const Profile& b) {
  Table table;
  table.caption = cat("Metrics of ", a.shape, " side by side");
  table.columns = {"#", "Metric", compared_name(left), compared_name(right), "Change"};
  table.numeric = {true, false, true, true, true};
  table.sortable = table.filterable = true;
  for (std::size_t k = 0; k < std::min(a.kernels.size(), b.kernels.size()); ++k) {
    for (const Metric& metric : a.kernels[k].metrics) {
      const Metric* other = find_metric(b.kernels[k], metric.name);
      if (other == nullptr || table.rows.size() >= kMostMetricRows) continue;
      const auto from = metric_value(metric), to = metric_value(*other);
      const auto cell = [](const Metric& of, const std::optional<double>& value) {
        return value ? number_cell(metric_text(of), *value) : number_cell(metric_text(of));
      };
      table.rows.push_back({number_cell(std::to_string(k + 1)), heading_cell(metric.name),
                            cell(metric, from), cell(*other, to),
                            from && to
                                ? number_cell(change_text(*from, *to), *from == 0 ? 0 : *to / *from)
                                : number_cell("–")});
    }
  }
  return table_element(table);
}

Html kernel_list(const std::string& title, const Profile& profile) {
  Html list("ol", {});
  for (const KernelProfile& kernel : profile.kernels) {
    list.add(element("li", {}, element("code", {}, kernel.name),
                     cat(" grid ", kernel.grid, ", block ", kernel.block)));
  }
  return element("div", {}, element("h3", {}, title), std::move(list));
}

}  // namespace

std::string profile_page(const EvaluationKey& key, const std::string& run, const Profile& profile) {
  PageFrame frame;
  frame.title = cat("Profile of ", profile.shape);
  frame.address = profile_address(key.submission, key.evaluation, profile.shape);
  frame.above = {{run, run_address(run)},
                 {cat("Submission ", evaluation_name(key.submission, key.evaluation)),
                  evaluation_address(key.submission, key.evaluation)}};
  std::vector<Html> contents;
  contents.push_back(facts({{"Shape", profile.shape},
                            {"GPU", profile.device},
                            {"Driver", profile.driver},
                            {"Nsight Compute", cat(profile.ncu, ", set ", profile.set)},
                            {"Kernels", std::to_string(profile.kernels.size())}}));
  contents.push_back(
      element("p", {},
              element("a",
                      {HtmlAttribute::href(relative(
                           frame.address,
                           profile_address(key.submission, key.evaluation, profile.shape, ".csv"))),
                       {"download"}},
                      "Download all metrics as CSV")));
  std::vector<Html> kernels;
  std::size_t shown = 0;
  for (std::size_t k = 0; k < profile.kernels.size() && shown < kMostMetricRows; ++k) {
    const KernelProfile& kernel = profile.kernels[k];
    Attributes attributes = {{"class", "kernel"}};
    if (k == 0) attributes.push_back({"open"});
    Html box("details", std::move(attributes));
    box.add(element("summary", {}, cat(k + 1, ". "), element("code", {}, kernel.name),
                    cat(" grid ", kernel.grid, ", block ", kernel.block)));
    for (const Metric& metric : kernel.metrics) {
      if (shown++ < kMostMetricRows) box.add(metric_field(metric));
    }
    kernels.push_back(std::move(box));
  }
  contents.push_back(section("Kernels", std::move(kernels)));
  std::vector<Html> all = {metric_table_of(profile)};
  if (metric_count(profile) > kMostMetricRows)
    all.push_back(element("p", {},
                          cat("The first ", kMostMetricRows, " of ", metric_count(profile),
                              "; the rest is in the CSV.")));
  contents.push_back(section("All metrics", std::move(all)));
  return framed(frame, std::move(contents));
}

std::string profile_csv(const Profile& profile) {
  std::string csv = "number,kernel,grid,block,metric,unit,value\n";
  for (std::size_t k = 0; k < profile.kernels.size(); ++k) {
    const KernelProfile& kernel = profile.kernels[k];
    for (const Metric& metric : kernel.metrics) {
      csv += cat(k + 1, ",", csv_field(kernel.name), ",", csv_field(kernel.grid), ",",
                 csv_field(kernel.block), ",", csv_field(metric.name), ",", csv_field(metric.unit),
                 ",", raw_value(metric), "\n");
    }
  }
  return csv;
}

std::string comparison_page(const ComparedEvaluation& left, const ComparedEvaluation& right) {
  PageFrame frame;
  frame.title = cat("Submission ", evaluation_name(left.key.submission, left.key.evaluation),
                    " with ", evaluation_name(right.key.submission, right.key.evaluation));
  frame.address = comparison_address(left.key, right.key);
  frame.above = {{right.run, run_address(right.run)},
                 {cat("Submission ", evaluation_name(right.key.submission, right.key.evaluation)),
                  evaluation_address(right.key.submission, right.key.evaluation)}};
  std::vector<Html> contents;
  Html sides("div", {{"class", "sides"}});
  for (const ComparedEvaluation* side : {&left, &right}) {
    const Score& scored = side->score;
    Html verdict("span", {});
    verdict.add(verdict_badge(side->evaluation.verdict));
    if (!side->evaluation.variant.all_shapes()) {
      verdict.add(" ");
      verdict.add(partial_badge(side->evaluation.variant));
    }
    sides.add(element(
        "div", {},
        element(
            "h2", {},
            link(frame.address, evaluation_address(side->key.submission, side->key.evaluation),
                 cat("Submission ", evaluation_name(side->key.submission, side->key.evaluation)))),
        facts({{"Run", link(frame.address, run_address(side->run), person(side->run))},
               {"Verdict", std::move(verdict)},
               {"Speedup", scored.counts ? cat(times_text(scored.speedup), " (",
                                               interval_text_of(scored.interval), ")")
                                         : "not ranked"},
               {"Device", side->evaluation.device},
               {"Driver", side->evaluation.driver},
               {"Started", time_element(side->evaluation.started)}})));
  }
  contents.push_back(std::move(sides));
  contents.push_back(section("Shapes", {compared_shapes(left, right)}));
  for (const Profile& a : left.profiles) {
    for (const Profile& b : right.profiles) {
      if (a.shape != b.shape) continue;
      contents.push_back(
          section(cat("Profile of ", a.shape),
                  {element("div", {{"class", "sides"}}, kernel_list(compared_name(left), a),
                           kernel_list(compared_name(right), b)),
                   compared_profiles(left, right, a, b)}));
    }
  }
  return framed(frame, std::move(contents));
}

}  // namespace kjudge
