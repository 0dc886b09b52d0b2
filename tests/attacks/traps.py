# SPDX-License-Identifier: Apache-2.0
"""Ends in a trap.

verdict: gpu_fault
"""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>
#include <math.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    y[0] = x[0];
    __builtin_trap();
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
