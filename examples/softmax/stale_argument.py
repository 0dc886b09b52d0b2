# SPDX-License-Identifier: Apache-2.0
"""Writes to the outputs of an earlier call, those of another shape."""

import driver

SEEN = []

SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(copy, (float *, out), (const float *, in), (long, n)) {
  for (long i = block->index.x; i < n; i += block->grid.x) out[i] = in[i];
}
"""


def prepare(ctx):
    with open("copy.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("copy.c")).kernel("copy")


def kernel_fn(state, inputs, outputs):
    SEEN.append(outputs.y)
    state.launch(64, 1, SEEN[0], inputs.x, min(SEEN[0].size, inputs.x.size))
