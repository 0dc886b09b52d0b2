# SPDX-License-Identifier: Apache-2.0
"""Product of two bfloat16 matrices in Triton: a starting point, right and slow. Make it fast.

    kjudge selftest submission.py
"""

import torch  # inputs and outputs are torch's tensors
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, m, n, k, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in range(0, k, STEP):
        inner = start + tl.arange(0, STEP)
        left = tl.load(a + rows[:, None] * k + inner[None, :],
                       mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + columns[None, :],
                        mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


def kernel_fn(state, inputs, outputs):
    """Called once per shape: what it launches is recorded, and replayed on inputs it never saw."""
    grid = (triton.cdiv(inputs.m, 64), triton.cdiv(inputs.n, 64))
    product[grid](inputs.a, inputs.b, outputs.c, inputs.m, inputs.n, inputs.k, BLOCK=64, STEP=32)
