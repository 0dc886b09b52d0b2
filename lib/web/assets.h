// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kjudge {

// Files that every page refers to, at the root of a site; they are in the program.
std::string_view page_stylesheet();  // kjudge.css
std::string_view page_script();      // kjudge.js
std::string_view page_icon();        // kjudge.svg

// What follows in kjudge.js where a server counts which metrics are looked at.
std::string_view counting_script();

}  // namespace kjudge
