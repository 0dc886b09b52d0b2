# SPDX-License-Identifier: Apache-2.0
"""Softmax in Triton: one program a row, the row in registers where it fits, else two passes."""

import torch
import triton
import triton.language as tl


@triton.jit
def whole_row(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    v = tl.load(x + row * cols + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + offsets, (v / tl.sum(v, 0)).to(y.dtype.element_ty), mask=mask)


@triton.jit
def long_row(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        mask = start + offsets < cols
        v = tl.load(x + row * cols + start + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, v)
        kept = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - kept) + tl.exp(v - kept)
        top = higher
    highest = tl.max(top, 0)
    scale = 1.0 / tl.sum(total * tl.exp(top - highest), 0)
    for start in range(0, cols, BLOCK):
        mask = start + offsets < cols
        v = tl.load(x + row * cols + start + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y + row * cols + start + offsets, (tl.exp(v - highest) * scale).to(y.dtype.element_ty),
                 mask=mask)


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    if cols <= 16384:
        block = triton.next_power_of_2(cols)
        warps = 4 if block <= 2048 else 8 if block <= 8192 else 16
        whole_row[(rows,)](inputs.x, outputs.y, cols, BLOCK=block, num_warps=warps)
    else:
        long_row[(rows,)](inputs.x, outputs.y, cols, BLOCK=8192, num_warps=16)
