// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "web/html.h"

namespace kjudge {

// TASK.md as elements: headings (all as <h3>), paragraphs, lists of "- ", tables of "|", code that
// is indented by 4 spaces or between ```, `code` and **strong** within a line. All else of
// Markdown, and HTML, stays the text that it is.
std::vector<Html> task_elements(std::string_view markdown);

}  // namespace kjudge
