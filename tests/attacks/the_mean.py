# SPDX-License-Identifier: Apache-2.0
"""Writes the mean of every row of results.

verdict: wrong_result
"""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>
#include <math.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    for (long c = 0; c < cols; ++c) y[c] = 1.0f / cols;
  }
}
"""


def prepare(ctx):
    with open("kernel.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("kernel.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.launch(min(rows, 64), 1, outputs.y, inputs.x, rows, cols)
