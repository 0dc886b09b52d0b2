# SPDX-License-Identifier: Apache-2.0
"""Triton, with the configuration of each shape found by autotuning on made-up data in prepare."""

import torch
import triton
import triton.language as tl

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@triton.autotune([triton.Config({}, num_warps=w) for w in (2, 4, 8, 16)], key=["cols"])
@triton.jit
def softmax_rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    v = tl.load(x + row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row + offsets, (v / tl.sum(v, 0)).to(y.dtype.element_ty), mask=mask)


def launch(x, y):
    rows, cols = x.shape
    if cols > 65536:  # a row does not fit the registers of a block
        torch.softmax(x, 1, out=y)
    else:
        softmax_rows[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))


def prepare(ctx):
    for shape in ctx.shapes:
        x = torch.randn(shape.rows, shape.cols, device="cuda", dtype=TYPES[shape.dtype])
        launch(x, torch.empty_like(x))


def kernel_fn(state, inputs, outputs):
    launch(inputs.x, outputs.y)
