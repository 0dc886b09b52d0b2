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
        .balign 64
        .globl kjudge_gpu_measuring
        .globl kjudge_gpu_measuring_end
        .hidden kjudge_gpu_measuring
        .hidden kjudge_gpu_measuring_end
kjudge_gpu_measuring:
        .incbin KJ_GPU_MEASURING
kjudge_gpu_measuring_end:
        .balign 64
        .globl kjudge_host_measuring
        .globl kjudge_host_measuring_end
        .hidden kjudge_host_measuring
        .hidden kjudge_host_measuring_end
kjudge_host_measuring:
        .incbin KJ_HOST_MEASURING
kjudge_host_measuring_end:
        .byte 0
        .section .note.GNU-stack,"",@progbits
