// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "replay/evaluation.h"
#include "score/score.h"

namespace kjudge {

// Text for people. Everything that came from a contestant passes printable().

// `text` without control characters (but line ends and tabs), which could drive a terminal.
std::string printable(std::string_view text);

// "accepted, 1.52x [1.50, 1.55]", "refused: reads input from the host".
std::string summary(const Evaluation& evaluation);

// A row for each shape, then the score or why there is none.
std::string evaluation_table(const Evaluation& evaluation);
// All of an evaluation: table, failures, log, where it ran, how long each step took.
std::string evaluation_page(const Evaluation& evaluation);

std::string duration_text(double ns);  // "12.3 us", "4.56 ms"

// Left-aligned first column, the others right-aligned, two spaces between.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace kjudge
