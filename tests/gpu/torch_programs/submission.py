# SPDX-License-Identifier: Apache-2.0
"""Every program is a shape."""

import programs
import torch


def prepare(ctx):
    # Weights of all programs at once: what a shape's graph does not reach is in the bundle too.
    return {shape.dims["program"]: programs.make(sorted(programs.PROGRAMS)[shape.dims["program"] - 1])
            for shape in ctx.shapes}


def kernel_fn(state, inputs, outputs):
    with torch.no_grad():
        outputs.y.copy_(state[inputs.program](inputs.x).reshape(-1))
