# SPDX-License-Identifier: Apache-2.0
"""Forks a second stream into the recording and never joins it."""

import driver

OTHER = driver.Stream()
FORK = driver.Event()

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
    FORK.record(driver.current_stream())
    OTHER.wait(FORK)
    with OTHER:
        state.launch(64, 1, outputs.y, inputs.x, inputs.x.size)
