# SPDX-License-Identifier: Apache-2.0
"""Allocates more than the challenge allows."""

import driver


def prepare(ctx):
    return driver.empty((40 << 30,), "uint8")


def kernel_fn(state, inputs, outputs):
    pass
