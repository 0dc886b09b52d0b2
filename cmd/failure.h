// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.h"
#include "error.h"

namespace kjudge {

// That a failure ends a command with.
int exit_code(Fault fault);

// What is wrong with how kjudge was called: which option or variable, or a command that there is
// not and the one that may be meant.
std::string usage_text(const CLI::App& app, const CLI::Error& error);

// From a catch block: says what went wrong on stderr (help and version, which CLI11 throws, on
// stdout) and returns the exit code.
int report_failure(const CLI::App& app);

}  // namespace kjudge
