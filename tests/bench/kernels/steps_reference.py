# SPDX-License-Identifier: Apache-2.0
"""y = x."""

import driver

if not driver.is_host():
    import torch


def prepare(ctx):
    return driver.load(driver.build("steps.c"))["steps"] if driver.is_host() else None


def kernel_fn(state, inputs, outputs):
    if driver.is_host():
        state.launch(-(-inputs.n // 1024), 1, outputs.y, inputs.x, inputs.n, 0, 0, 1.0, 0.0)
    else:
        torch.mul(inputs.x, 1, out=outputs.y)
