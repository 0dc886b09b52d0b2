// SPDX-License-Identifier: Apache-2.0
#include "store/terms.h"

namespace kjudge {

Terms terms_of(const Evaluation& facts) {
  return {facts.challenge,
          facts.challenge_version,
          facts.challenge_sha256,
          facts.arch,
          device_kind(facts.arch, facts.device),
          facts.method};
}

std::string device_kind(const std::string& arch, const std::string& device) {
  return arch == "x86_64" ? arch : device.substr(0, device.rfind(' '));
}

}  // namespace kjudge
