# SPDX-License-Identifier: Apache-2.0
"""Every feature is a shape."""

import torch

import extension


def prepare(ctx):
    most = max(shape.dims["n"] for shape in ctx.shapes)
    return extension.load(), torch.empty(most + 64, device="cuda")


def kernel_fn(state, inputs, outputs):
    library, scratch = state
    extension.check(library.run(inputs.feature - 1, inputs.x.data_ptr(), outputs.y.data_ptr(), inputs.n,
                                scratch.data_ptr(), torch.cuda.current_stream().cuda_stream))
