# SPDX-License-Identifier: Apache-2.0
"""scale.cu for the host driver; on a GPU just y = 2 x."""

import driver

if not driver.is_host():
    import torch  # then inputs and outputs are torch's tensors


def prepare(ctx):
    return driver.load(driver.build("scale.c"))["scale"] if driver.is_host() else None


def kernel_fn(state, inputs, outputs):
    if driver.is_host():
        state.launch(-(-inputs.n // 1024), 1, outputs.y, inputs.x, inputs.n, inputs.steps, 1.0, 0.0)
    else:
        torch.mul(inputs.x, 2, out=outputs.y)
