# SPDX-License-Identifier: Apache-2.0
"""Numba: a block takes a row. Its arrays are float32; torch converts bfloat16."""

import numpy
import torch

if not hasattr(numpy, "row_stack"):  # numpy 2.5.2 has none, and numba asks for it
    numpy.row_stack = numpy.vstack
import numba  # noqa: E402
from numba import cuda

THREADS = 256


@cuda.jit
def softmax_rows(x, y):
    shared = cuda.shared.array(THREADS, numba.float32)
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    top = numba.float32(-1e38)
    for c in range(thread, x.shape[1], THREADS):
        top = max(top, x[row, c])
    shared[thread] = top
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            shared[thread] = max(shared[thread], shared[thread + step])
        step //= 2
    cuda.syncthreads()
    top = shared[0]
    cuda.syncthreads()
    total = numba.float32(0)
    for c in range(thread, x.shape[1], THREADS):
        total += cuda.libdevice.expf(x[row, c] - top)
    shared[thread] = total
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            shared[thread] += shared[thread + step]
        step //= 2
    cuda.syncthreads()
    total = shared[0]
    for c in range(thread, x.shape[1], THREADS):
        y[row, c] = cuda.libdevice.expf(x[row, c] - top) / total


def kernel_fn(state, inputs, outputs):
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    x = inputs.x.float()
    y = outputs.y if outputs.y.dtype == torch.float32 else torch.empty_like(x)
    softmax_rows[x.shape[0], THREADS, stream](cuda.as_cuda_array(x), cuda.as_cuda_array(y))
    if y is not outputs.y:
        outputs.y.copy_(y)
