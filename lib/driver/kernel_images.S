/* SPDX-License-Identifier: Apache-2.0
   Images of kjudge's own kernels; the paths come from CMake. */
        .section .rodata
        .balign 64
        .globl kjudge_gpu_kernels
        .hidden kjudge_gpu_kernels
kjudge_gpu_kernels:
        .incbin KJ_GPU_KERNELS
        .balign 64
        .globl kjudge_host_kernels_image
        .hidden kjudge_host_kernels_image
kjudge_host_kernels_image:
        .incbin KJ_HOST_KERNELS
        .byte 0
        .section .note.GNU-stack,"",@progbits
