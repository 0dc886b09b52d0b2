/* SPDX-License-Identifier: Apache-2.0
   The description of the interface; the path comes from CMake. */
        .section .rodata
        .globl kjudge_openapi, kjudge_openapi_end
        .hidden kjudge_openapi, kjudge_openapi_end
kjudge_openapi:
        .incbin KJ_OPENAPI
kjudge_openapi_end:
        .section .note.GNU-stack,"",@progbits
