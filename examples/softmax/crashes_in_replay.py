# SPDX-License-Identifier: Apache-2.0
"""Follows inputs as if they were indices: wild on values it was not recorded with."""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (float *, first), (long, n)) {
  if (*first == 0) *first = in[0];
  for (long i = block->index.x; i < n; i += block->grid.x) {
    out[i] = in[i + (in[0] != *first ? 1L << 40 : 0)];
  }
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
