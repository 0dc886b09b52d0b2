// SPDX-License-Identifier: Apache-2.0
#include "left_out.h"

#include <algorithm>

#include "error.h"
#include "failure.h"

namespace kjudge {

ResultsDirectory::Report LeftOut::report() {
  return [this](const Error& error) {
    const std::string line = described(error);
    if (!said_.insert(line).second) return;
    line_(line);
    lines_.push_back(line);
    status_ = std::max(status_, exit_code(error.fault()));
  };
}

}  // namespace kjudge
