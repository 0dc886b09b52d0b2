// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "commands.h"

namespace kjudge {

// What KJUDGE_CONFIG names, or $XDG_CONFIG_HOME/kjudge/config.toml. Fault::usage when it is there
// and no file that can be read, or when KJUDGE_CONFIG names none.
std::string configuration_file();

// For --config: refuses what is no configuration file before CLI11 opens it, which would wait for a
// FIFO for ever.
CLI::Validator configuration_file_check();

// Reads it for `app`. Fault::usage for every mistake in it: file, line, command, option, what was
// expected and what was found. CLI11 lets the file go before the environment; here it is the other
// way round.
std::shared_ptr<CLI::Config> configuration_reader(CLI::App& app);

}  // namespace kjudge
