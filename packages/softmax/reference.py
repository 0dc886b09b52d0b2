# SPDX-License-Identifier: Apache-2.0
"""Expected outputs, in double."""

import driver


def prepare(ctx):
    return driver.load(driver.build("reference.c")).kernel("softmax_reference")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.launch(min(rows, 1024), 1, outputs.y, inputs.x, rows, cols)
