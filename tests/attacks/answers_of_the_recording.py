# SPDX-License-Identifier: Apache-2.0
"""Computes in Python for the made-up inputs, and records a copy of the answers.

verdict: wrong_result
"""

import math

import driver

SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(copy, (float *, out), (const float *, in), (long, n)) {
  for (long i = block->index.x; i < n; i += block->grid.x) out[i] = in[i];
}
"""
ANSWERS = {}


def prepare(ctx):
    with open("kernel.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("kernel.c")).kernel("copy")


def softmax(row):
    values = [math.exp(value - max(row)) for value in row]
    return [value / sum(values) for value in values]


def kernel_fn(state, inputs, outputs):
    if inputs.shape not in ANSWERS:  # the first, eager call
        ANSWERS[inputs.shape] = driver.array([softmax(row) for row in inputs.x.tolist()])
    state.launch(4, 1, outputs.y, ANSWERS[inputs.shape], inputs.x.size)
