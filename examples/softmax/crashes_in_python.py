# SPDX-License-Identifier: Apache-2.0
"""Reads address 0 from Python: the capture process dies."""

import ctypes


def prepare(ctx):
    return ctypes.string_at(0)


def kernel_fn(state, inputs, outputs):
    pass
