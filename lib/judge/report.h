// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "replay/evaluation.h"
#include "score/score.h"

namespace kjudge {

// Text for people. Everything that came from a contestant passes printable().

// `text` with a question mark for each byte that is no UTF-8 and for each hidden character
// (unicode.h) but line ends and tabs: what could drive a terminal, or show another text.
std::string printable(std::string_view text);

// printable() for a message after its name on a line: each further line stands behind two spaces,
// so that none of a contestant's can be taken for one of kjudge's own, such as "verdict: accepted".
std::string hanging(std::string_view text);

// hanging() for messages on a terminal: of each line that is longer than kMessageBytes the middle
// is left out, so that what a stranger wrote does not bury what is said of it.
inline constexpr std::size_t kMessageBytes = 1000;
std::string message_text(std::string_view text);

// "accepted, 1.52x [1.50, 1.55]", "refused: reads input from the host".
std::string summary(const Evaluation& evaluation);

// A row for each shape, then the score or why there is none.
std::string evaluation_table(const Evaluation& evaluation);
// All of an evaluation: table, failures, log, where it ran, how long each step took.
std::string evaluation_page(const Evaluation& evaluation);

std::string duration_text(double ns);  // "12.3 us", "4.56 ms"

// Each line after `margin`.
std::string indented(std::string_view text, std::string_view margin);

// Left-aligned first column, the others right-aligned, two spaces between.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace kjudge
