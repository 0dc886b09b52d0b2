# SPDX-License-Identifier: Apache-2.0
"""What submissions are timed against: cuBLAS through torch, sums in float32."""

import torch

torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def kernel_fn(state, inputs, outputs):
    torch.mm(inputs.a, inputs.b, out=outputs.c)
