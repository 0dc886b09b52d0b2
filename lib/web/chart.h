// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "score/score.h"
#include "web/html.h"
#include "web/site.h"

namespace kjudge {

// Charts as inline SVG, coloured by the stylesheet. Each has a label that says what it shows; the
// numbers also stand in a table beside it.

// About `most` round numbers (1, 2 or 5 times a power of ten apart) within the range.
struct Ticks {
  std::vector<double> at;
  int decimals = 0;  // that tell them apart
};
Ticks ticks_within(double low, double high, int most);

// A row for each round, a dot for each pair's ratio, a band for the interval, a line for the
// speedup. Empty where there is nothing to draw.
Html ratio_chart(const ShapeFacts& shape, const ShapeScore& score);

// A dot for each ranked evaluation, a step line for the best so far. Empty without points.
Html history_chart(const std::vector<HistoryPoint>& history, const std::string& label);

}  // namespace kjudge
