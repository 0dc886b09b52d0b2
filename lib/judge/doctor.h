// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kjudge {

// One thing about this machine that kjudge needs or that disturbs its measurements.
struct Finding {
  enum class State { good, warning, failure };
  State state = State::good;
  std::string name;    // "cpu governor"
  std::string what;    // what was found
  std::string advice;  // what to do; empty when good
};
std::string_view name(Finding::State state);  // "ok", "warning", "failure"

// Looks at the machine; changes nothing. Failures are what stops kjudge from judging here at all.
std::vector<Finding> examine_machine();

}  // namespace kjudge
