// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kjudge {

// Where the pages of a site lie, seen from its root. Every name becomes one that is safe in an
// address and on any file system, and no two names the same.

// Lower-case letters, digits and "._-" stay; all else is named by its hash: "~4f2a...".
std::string address_part(std::string_view name);

// What an evaluation is called on pages: "42" for the first of submission 42, "42-2" for its
// second.
std::string evaluation_name(int submission, int evaluation);

std::string run_address(std::string_view run);                   // run/ada.html
std::string evaluation_address(int submission, int evaluation);  // evaluation/42.html
// profile/42.SHAPE.html, and the table beside it: profile/42.SHAPE.csv
std::string profile_address(int submission, int evaluation, std::string_view shape,
                            std::string_view suffix = ".html");
std::string code_address(int submission);                                // code/42.html
std::string challenge_address(std::string_view challenge, int version);  // challenge/softmax-1.html

struct EvaluationKey {
  int submission = 0, evaluation = 0;
  auto operator<=>(const EvaluationKey&) const = default;
};
// compare/42-with-57.html
std::string comparison_address(const EvaluationKey& left, const EvaluationKey& right);

}  // namespace kjudge
