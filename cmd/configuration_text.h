// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kjudge {

// A line of a configuration file: `[section]`, which has no name, or `name = value` in a section.
struct ConfigurationLine {
  int line = 0;  // from 1
  std::string section, name;
  std::vector<std::string> values;
};

// The part of TOML that configuration files need: comments, sections, names with or without their
// section before a dot, strings in quotes, numbers, true, false, and lists of them. Throws
// Fault::usage, beginning with the line, for all else, and for what stands twice.
std::vector<ConfigurationLine> read_configuration(std::string_view text);

}  // namespace kjudge
