// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "json_fields.h"

namespace kjudge {

// A page of the manual from its hand-written source in man/, which is mdoc with lines that stand
// for what the program's own tables say:
//   @name               NAME and SYNOPSIS of the page's command
//   @options            list items: its options and arguments
//   @commands           list items: the commands of the program
//   @environment        list items: variables that set options
//   @fields FORMAT PATH list items: fields of the object at PATH (nothing: the document) of FORMAT
//   @about NAME         the lines that follow are added to the item NAME ("--shape", "submission",
//                       "dims") of the next list
// Fault::malformed, naming `file` and the line, when a name is not known, or when the page has some
// tables of a format and not all.
std::string manual_page(std::string_view source, const std::string& file, const CLI::App& app,
                        const CLI::App& command, const std::vector<JsonFormat>& formats);

}  // namespace kjudge
