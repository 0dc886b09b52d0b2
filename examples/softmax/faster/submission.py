# SPDX-License-Identifier: Apache-2.0
"""Two passes over a row instead of three, and stores that bypass the caches.

The first pass finds maximum and sum together, the second writes each result once, straight to
memory: the output is never read, not even to fill a cache line.
"""

import driver


def prepare(ctx):
    return driver.load(driver.build("fused.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    rows_per_block = max(1, 16384 // cols)
    state.launch(-(-rows // rows_per_block), 1, outputs.y, inputs.x, rows, cols, rows_per_block)
