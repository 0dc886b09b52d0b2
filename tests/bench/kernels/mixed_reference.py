# SPDX-License-Identifier: Apache-2.0
"""Expected outputs of mixed.py, in float32."""

import driver

if not driver.is_host():
    import torch


def prepare(ctx):
    return driver.load(driver.build("mixed.c")) if driver.is_host() else None


def kernel_fn(state, inputs, outputs):
    if driver.is_host():
        if inputs.product:
            state["product32"].launch(inputs.m, 1, outputs.c, inputs.a, inputs.b, inputs.n, inputs.k)
        else:
            state["widen"].launch(inputs.m, 1, outputs.c, inputs.a, inputs.k)
    elif inputs.product:
        torch.mm(inputs.a.float(), inputs.b.float(), out=outputs.c)
    else:
        outputs.c.copy_(inputs.a)
