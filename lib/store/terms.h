// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kjudge {

// What two evaluations must share to be of the same contest: the same submission is judged once for
// each, and only those of the same terms are ranked in one table.
struct Terms {
  std::string challenge;
  int challenge_version = 1;      // 0: any
  std::string challenge_sha256;   // empty: any
  std::string arch, device_kind;  // arch empty: any device and method
  int method = 0;
  auto operator<=>(const Terms&) const = default;
};

}  // namespace kjudge
