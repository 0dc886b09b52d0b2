# SPDX-License-Identifier: Apache-2.0
"""Softmax of each row of x: a starting point, right and slow. Make it fast.

    kjudge selftest submission.py
"""

import driver

if not driver.is_host():
    import torch  # then inputs and outputs are torch's tensors

SOURCE = """
#include <kjudge/host_kernel.h>
#include <math.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
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
    """Called once: compile, allocate, warm up. There are no real inputs yet."""
    if not driver.is_host():
        return None
    with open("softmax_submission.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("softmax_submission.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    """Called once per shape: what it launches is recorded, and replayed on inputs it never saw."""
    if not driver.is_host():
        x = inputs.x.float()
        e = torch.exp(x - x.amax(1, keepdim=True))
        outputs.y.copy_(e / e.sum(1, keepdim=True))
        return
    rows, cols = inputs.x.shape
    state.launch(min(rows, 1024), 1, outputs.y, inputs.x, rows, cols)
