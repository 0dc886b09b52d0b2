/* SPDX-License-Identifier: Apache-2.0
   The files that every page refers to, and what a server adds; the paths come from CMake. */
        .section .rodata
        .globl kjudge_count_js, kjudge_count_js_end
        .globl kjudge_css, kjudge_css_end, kjudge_js, kjudge_js_end, kjudge_svg, kjudge_svg_end
        .hidden kjudge_count_js, kjudge_count_js_end
        .hidden kjudge_css, kjudge_css_end, kjudge_js, kjudge_js_end, kjudge_svg, kjudge_svg_end
kjudge_css:
        .incbin KJ_CSS
kjudge_css_end:
kjudge_js:
        .incbin KJ_JS
kjudge_js_end:
kjudge_svg:
        .incbin KJ_SVG
kjudge_svg_end:
kjudge_count_js:
        .incbin KJ_COUNT_JS
kjudge_count_js_end:
        .section .note.GNU-stack,"",@progbits
