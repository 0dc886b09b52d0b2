// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "options.h"
#include "store/selection.h"

namespace kjudge {

// Options of commands that are about some of the evaluations of a results directory.
struct SelectOptions {
  bool json = false;
  std::string results;
  Selection selection;
};
void add_select_options(CLI::App& command, SelectOptions& options);

// With its times completed. Fault::usage for what is no time.
Selection selection_of(const SelectOptions& options);

}  // namespace kjudge
