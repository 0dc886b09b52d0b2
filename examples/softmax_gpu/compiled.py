# SPDX-License-Identifier: Apache-2.0
"""torch.compile: inductor's Triton kernels."""

import torch


def softmax(x):
    x = x.float()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def prepare(ctx):
    return torch.compile(softmax, dynamic=False)


def kernel_fn(state, inputs, outputs):
    outputs.y.copy_(state(inputs.x))
