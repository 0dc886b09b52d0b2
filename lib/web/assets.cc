// SPDX-License-Identifier: Apache-2.0
#include "web/assets.h"

extern "C" {
extern const char kjudge_css[], kjudge_css_end[];
extern const char kjudge_js[], kjudge_js_end[];
extern const char kjudge_svg[], kjudge_svg_end[];
extern const char kjudge_count_js[], kjudge_count_js_end[];
}

namespace kjudge {

std::string_view page_stylesheet() { return {kjudge_css, kjudge_css_end}; }
std::string_view page_script() { return {kjudge_js, kjudge_js_end}; }
std::string_view page_icon() { return {kjudge_svg, kjudge_svg_end}; }
std::string_view counting_script() { return {kjudge_count_js, kjudge_count_js_end}; }

}  // namespace kjudge
