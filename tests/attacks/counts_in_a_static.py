# SPDX-License-Identifier: Apache-2.0
"""Counts calls in a static variable, which is no module variable of the driver.

verdict: wrong_result
"""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>
#include <math.h>
static long calls;

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  if (block->index.x == 0 && ++calls > 2) return;
  if (calls > 2) return;
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    float maximum = x[0];
    for (long c = 1; c < cols; ++c) maximum = fmaxf(maximum, x[c]);
    float sum = 0;
    for (long c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - maximum);
    for (long c = 0; c < cols; ++c) y[c] /= sum;
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
