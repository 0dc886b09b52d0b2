# SPDX-License-Identifier: Apache-2.0
"""Forgets the scratch memory of one shape when it allocates that of the next."""

import driver

SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(copy, (float *, out), (const float *, in), (long, n)) {
  for (long i = block->index.x; i < n; i += block->grid.x) out[i] = in[i];
}
"""


def prepare(ctx):
    with open("copy.c", "w") as file:
        file.write(SOURCE)
    return {"copy": driver.load(driver.build("copy.c")).kernel("copy")}


def kernel_fn(state, inputs, outputs):
    state["scratch"] = driver.empty(inputs.x.shape)
    state["copy"].launch(64, 1, state["scratch"], inputs.x, inputs.x.size)
    state["copy"].launch(64, 1, outputs.y, state["scratch"], inputs.x.size)
