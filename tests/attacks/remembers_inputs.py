# SPDX-License-Identifier: Apache-2.0
"""Keeps the first inputs and their answers in its memory, and gives them again.

verdict: wrong_result
"""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>
#include <math.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols), (float *, memo)) {
  // memo: a flag, then the answers.
  if (memo[0] == 1) {
    for (long i = 0; i < rows * cols; ++i) out[i] = memo[1 + i];
    return;
  }
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    float maximum = x[0];
    for (long c = 1; c < cols; ++c) maximum = fmaxf(maximum, x[c]);
    float sum = 0;
    for (long c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - maximum);
    for (long c = 0; c < cols; ++c) memo[1 + row * cols + c] = y[c] /= sum;
  }
  memo[0] = 1;
}
"""


def prepare(ctx):
    with open("kernel.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("kernel.c")).kernel("softmax")


MEMO = {}


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    memo = MEMO.setdefault(inputs.shape, driver.zeros(1 + rows * cols))
    state.launch(1, 1, outputs.y, inputs.x, rows, cols, memo)
