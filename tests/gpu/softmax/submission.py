# SPDX-License-Identifier: Apache-2.0
"""What submissions are timed against: torch's own softmax."""

import torch


def kernel_fn(state, inputs, outputs):
    torch.softmax(inputs.x, 1, out=outputs.y)
