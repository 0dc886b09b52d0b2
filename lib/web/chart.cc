// SPDX-License-Identifier: Apache-2.0
#include "web/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "web/fragments.h"

namespace kjudge {
namespace {

// Of the picture, in its own units; about CSS pixels on a phone.
constexpr double kWidth = 400, kLeft = 58, kRight = 388, kTop = 8;
constexpr std::size_t kMostDots = 2000;

struct Range {
  double low = 0, high = 0;
  bool empty = true;
  void add(double value) {
    low = empty ? value : std::min(low, value);
    high = empty ? value : std::max(high, value);
    empty = false;
  }
  // Room at both ends, and never a width of zero.
  void widen(double least) {
    const double room = std::max((high - low) * 0.06, least);
    low -= room;
    high += room;
  }
};

struct Scale {
  Range range;
  double from = 0, to = 1;
  double operator()(double value) const {
    return from + (value - range.low) / (range.high - range.low) * (to - from);
  }
};

Html svg_line(const char* kind, double x1, double y1, double x2, double y2) {
  return element("line", {{"class", kind}, {"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}});
}

Html svg_text(const char* anchor, double x, double y, const std::string& text) {
  return element("text", {{"x", x}, {"y", y}, {"text-anchor", anchor}}, text);
}

Html picture(double height, const std::string& label, std::vector<Html> parts) {
  const std::string box = cat("0 0 ", number_text(kWidth, 6), " ", number_text(height, 6));
  return element("svg",
                 {{"class", "chart"}, {"viewBox", box}, {"role", "img"}, {"aria-label", label}},
                 std::move(parts));
}

// Told apart by form as well as by colour.
Html dot(std::size_t series, double x, double y) {
  const std::string kind = cat("dot series-", series % 4);
  switch (series % 4) {
    case 0:
      return element("circle", {{"class", kind}, {"cx", x}, {"cy", y}, {"r", 3.2}});
    case 1:
      return element(
          "rect",
          {{"class", kind}, {"x", x - 2.8}, {"y", y - 2.8}, {"width", 5.6}, {"height", 5.6}});
    default: {
      const double size = series % 4 == 2 ? 4 : -4;
      return element("path", {{"class", kind},
                              {"d", cat("M", number_text(x, 6), " ", number_text(y - size, 6),
                                        "l4 ", number_text(1.7 * size, 4), "h-8z")}});
    }
  }
}

std::vector<std::string> regimes_in(const ShapeFacts& shape) {
  std::vector<std::string> names;
  for (const RoundFacts& round : shape.rounds) {
    for (const Pair& pair : round.pairs) {
      if (std::find(names.begin(), names.end(), pair.regime) == names.end())
        names.push_back(pair.regime);
    }
  }
  return names;
}

// The value axis of a chart whose values go from left to right.
void add_bottom_axis(std::vector<Html>& parts, const Scale& x, double bottom) {
  const Ticks ticks = ticks_within(x.range.low, x.range.high, 6);
  for (const double value : ticks.at) {
    parts.push_back(svg_line("grid", x(value), kTop, x(value), bottom));
    parts.push_back(svg_text("middle", x(value), bottom + 15, fixed_text(value, ticks.decimals)));
  }
}

std::string day_text(double seconds, bool with_hour) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), with_hour ? "%m-%d %H:%M" : "%Y-%m-%d", &parts);
  return text.data();
}

}  // namespace

Ticks ticks_within(double low, double high, int most) {
  Ticks ticks;
  const double rough = (high - low) / most;
  if (!std::isfinite(rough) || rough <= 0) return ticks;
  const double power = std::floor(std::log10(rough));
  double step = std::pow(10, power + 1);
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * std::pow(10, power) >= rough) {
      step = factor * std::pow(10, power);
      break;
    }
  }
  ticks.decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step * 1.0001))), 0, 9);
  // Counted, not summed: no tick is lost to rounding, and no range is too long to end.
  const double first = std::ceil(low / step);
  for (int i = 0; i <= most && (first + i) * step <= high; ++i)
    ticks.at.push_back((first + i) * step);
  return ticks;
}

Html ratio_chart(const ShapeFacts& shape, const ShapeScore& score) {
  Range range;
  std::size_t dots = 0;
  for (const RoundFacts& round : shape.rounds) {
    for (const Pair& pair : round.pairs) {
      if (const double ratio = pair.ratio(); std::isfinite(ratio)) range.add(ratio), ++dots;
    }
  }
  if (dots == 0 || dots > kMostDots) return {};
  range.add(score.interval.low);
  range.add(score.interval.high);
  range.widen(std::max(std::abs(range.high) * 0.002, 1e-9));
  const Scale x{range, kLeft, kRight};
  constexpr double kRow = 16;
  const double bottom = kTop + kRow * static_cast<double>(shape.rounds.size());

  std::vector<Html> parts;
  parts.push_back(
      element("rect", {{"class", "interval"},
                       {"x", x(score.interval.low)},
                       {"y", kTop},
                       {"width", std::max(x(score.interval.high) - x(score.interval.low), 1.0)},
                       {"height", bottom - kTop}}));
  add_bottom_axis(parts, x, bottom);
  if (range.low < 1 && 1 < range.high) parts.push_back(svg_line("one", x(1), kTop, x(1), bottom));
  parts.push_back(svg_line("median", x(score.speedup), kTop, x(score.speedup), bottom));
  const std::vector<std::string> regimes = regimes_in(shape);
  for (std::size_t r = 0; r < shape.rounds.size(); ++r) {
    const double y = kTop + kRow * (static_cast<double>(r) + 0.5);
    parts.push_back(svg_text("end", kLeft - 6, y + 4, cat("round ", r + 1)));
    for (const Pair& pair : shape.rounds[r].pairs) {
      if (!std::isfinite(pair.ratio())) continue;
      const auto series = std::find(regimes.begin(), regimes.end(), pair.regime) - regimes.begin();
      parts.push_back(dot(static_cast<std::size_t>(series), x(pair.ratio()), y));
    }
  }
  parts.push_back(svg_text("middle", (kLeft + kRight) / 2, bottom + 31, "speedup of each pair"));
  const std::string label =
      cat("Speedups of the ", dots, " pairs of ", shape.name, ": median ",
          times_text(score.speedup), ", interval ", interval_text_of(score.interval));
  Html figure = element("figure", {}, picture(bottom + 38, label, std::move(parts)));
  Html legend("figcaption", {{"class", "legend"}});
  for (std::size_t i = 0; regimes.size() > 1 && i < regimes.size(); ++i) {
    legend.add(element(
        "span", {},
        element("svg", {{"class", "key"}, {"viewBox", "0 0 10 10"}, {"aria-hidden", "true"}},
                dot(i, 5, 5)),
        " ", regimes[i]));
  }
  legend.add(element("span", {}, "line: speedup, band: its interval"));
  figure.add(std::move(legend));
  return figure;
}

Html history_chart(const std::vector<HistoryPoint>& history, const std::string& label) {
  if (history.empty() || history.size() > kMostDots) return {};
  Range times, speedups;
  for (const HistoryPoint& point : history) {
    times.add(point.time_s);
    speedups.add(point.speedup);
  }
  times.widen(1800);
  speedups.widen(std::max(speedups.high * 0.02, 1e-9));
  constexpr double kBottom = 170;
  const Scale x{times, kLeft, kRight}, y{speedups, kBottom, kTop};

  std::vector<Html> parts;
  const Ticks ticks = ticks_within(speedups.low, speedups.high, 6);
  for (const double value : ticks.at) {
    parts.push_back(svg_line("grid", kLeft, y(value), kRight, y(value)));
    parts.push_back(
        svg_text("end", kLeft - 6, y(value) + 4, cat(fixed_text(value, ticks.decimals), "×")));
  }
  const bool with_hour = times.high - times.low < 4 * 86'400;
  for (const double part : {0.14, 0.5, 0.86}) {
    const double time = times.low + part * (times.high - times.low);
    parts.push_back(svg_line("tick", x(time), kBottom, x(time), kBottom + 4));
    parts.push_back(svg_text("middle", x(time), kBottom + 18, day_text(time, with_hour)));
  }
  std::string path;
  double best = 0;
  for (const HistoryPoint& point : history) {
    if (point.speedup <= best) continue;
    path += path.empty()
                ? cat("M", number_text(x(point.time_s), 6), " ", number_text(y(point.speedup), 6))
                : cat("H", number_text(x(point.time_s), 6), "V", number_text(y(point.speedup), 6));
    best = point.speedup;
  }
  path += cat("H", number_text(kRight, 6));
  parts.push_back(element("path", {{"class", "best"}, {"d", path}}));
  for (const HistoryPoint& point : history)
    parts.push_back(dot(0, x(point.time_s), y(point.speedup)));
  return element("figure", {}, picture(kBottom + 26, label, std::move(parts)));
}

}  // namespace kjudge
