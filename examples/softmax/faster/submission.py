# SPDX-License-Identifier: Apache-2.0
"""Fuses the three passes of the baseline and stores past the caches: a third less traffic to memory."""

import driver


def prepare(ctx):
    softmax = driver.load(driver.build("fused.c")).kernel("softmax")
    softmax.set_attribute(8, 200 << 10)  # the largest dynamic shared memory of a launch
    return softmax


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    # Rows overlap within a block: at least four, if that still leaves 16 blocks to balance cores.
    rows_per_block = max(1, 65536 // cols, min(4, rows // 16))
    shared = 2 * 4 * (cols + 1535)
    state.launch(-(-rows // rows_per_block), 1, outputs.y, inputs.x, rows, cols, rows_per_block,
                 shared=shared if shared <= 200 << 10 else 0)
