# SPDX-License-Identifier: Apache-2.0
"""Ends on the inputs that it was recorded with, and on no others."""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (float *, first), (long, n)) {
  if (*first == 0) *first = in[0];
  for (volatile long spin = 0; in[0] != *first; ++spin) {
  }
  for (long i = block->index.x; i < n; i += block->grid.x) out[i] = in[i];
}
"""


def prepare(ctx):
    with open("kernel.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("kernel.c")).kernel("softmax")


FIRST = {}


def kernel_fn(state, inputs, outputs):
    first = FIRST.setdefault(inputs.shape, driver.zeros(1))
    state.launch(1, 1, outputs.y, inputs.x, first, inputs.x.size)
