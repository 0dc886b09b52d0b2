// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "replay/evaluation.h"

namespace kjudge {

// What two evaluations must share to be of the same contest: the same submission is judged once for
// each, and only those of the same terms are ranked in one table.
struct Terms {
  std::string challenge;
  int challenge_version = 1;      // where one asks for some: 0 is any
  std::string challenge_sha256;   // then too: empty is any
  std::string arch, device_kind;  // without an arch: any device and method
  int method = 0;
  auto operator<=>(const Terms&) const = default;
};
Terms terms_of(const Evaluation& facts);

// "NVIDIA H200" without its UUID; of processors just the arch, for their times are no contest's.
std::string device_kind(const std::string& arch, const std::string& device);

}  // namespace kjudge
