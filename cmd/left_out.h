// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "options.h"
#include "store/results.h"

namespace kjudge {

// What a command left out of a results directory because it cannot be read, and went on with the
// rest. Each is said, once; the command ends as for the worst of them.
class LeftOut {
 public:
  explicit LeftOut(std::function<void(const std::string&)> line = say) : line_(std::move(line)) {}
  LeftOut(const LeftOut&) = delete;
  LeftOut& operator=(const LeftOut&) = delete;

  // For what reads; refers to this.
  ResultsDirectory::Report report();
  // As they were said.
  const std::vector<std::string>& lines() const { return lines_; }
  // exit_malformed, or exit_io where the machine failed; with nothing left out exit_done.
  int status() const { return status_; }

 private:
  const std::function<void(const std::string&)> line_;
  std::set<std::string> said_;
  std::vector<std::string> lines_;
  int status_ = exit_done;
};

}  // namespace kjudge
