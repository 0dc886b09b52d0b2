# SPDX-License-Identifier: Apache-2.0
"""Begins a capture of its own in kernel_fn."""

from ctypes import byref, c_int, c_void_p

import driver

OTHER = driver.Stream()

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
    driver.call("cuStreamBeginCapture_v2", c_void_p(OTHER.handle), c_int(0))
    with OTHER:
        state.launch(64, 1, outputs.y, inputs.x, inputs.x.size)
    graph = c_void_p()
    driver.call("cuStreamEndCapture", c_void_p(OTHER.handle), byref(graph))
    state.launch(64, 1, outputs.y, inputs.x, inputs.x.size)
