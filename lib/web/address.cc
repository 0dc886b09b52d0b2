// SPDX-License-Identifier: Apache-2.0
#include "web/address.h"

#include <algorithm>

#include "error.h"
#include "sha256.h"

namespace kjudge {

// "~" is in no part that stays, so no name can take the address of another.
std::string address_part(std::string_view name) {
  const bool plain =
      !name.empty() && name.size() <= 100 && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
      });
  return plain ? std::string(name) : cat("~", sha256_hex(name).substr(0, 32));
}

std::string evaluation_name(int submission, int evaluation) {
  return evaluation == 1 ? std::to_string(submission) : cat(submission, "-", evaluation);
}

std::string run_address(std::string_view run) { return cat("run/", address_part(run), ".html"); }

std::string evaluation_address(int submission, int evaluation) {
  return cat("evaluation/", evaluation_name(submission, evaluation), ".html");
}

std::string profile_address(int submission, int evaluation, std::string_view shape,
                            std::string_view suffix) {
  return cat("profile/", evaluation_name(submission, evaluation), ".", address_part(shape), suffix);
}

std::string code_address(int submission) { return cat("code/", submission, ".html"); }

std::string challenge_address(std::string_view challenge, int version) {
  return cat("challenge/", address_part(challenge), "-", version, ".html");
}

std::string comparison_address(const EvaluationKey& left, const EvaluationKey& right) {
  return cat("compare/", evaluation_name(left.submission, left.evaluation), "-with-",
             evaluation_name(right.submission, right.evaluation), ".html");
}

}  // namespace kjudge
