// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.h"

namespace kjudge {

// From a catch block: says what went wrong on stderr (help and version, which CLI11 throws, on
// stdout) and returns the exit code.
int report_failure(const CLI::App& app);

}  // namespace kjudge
