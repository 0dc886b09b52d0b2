# SPDX-License-Identifier: Apache-2.0
"""A kernel with a mistake of syntax."""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  out[0] = in[0]
}
"""


def prepare(ctx):
    with open("kernel.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("kernel.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.launch(min(rows, 1024), 1, outputs.y, inputs.x, rows, cols)
