# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ through CuPy's RawModule, compiled with NVRTC."""

import cupy
import torch

SOURCE = r"""
#include <cuda_bf16.h>

template <class T>
__device__ void softmax_row(const T *x, T *y, long long cols) {
  __shared__ float shared[256];
  x += blockIdx.x * cols;
  y += blockIdx.x * cols;
  float top = -3e38f;
  for (long long c = threadIdx.x; c < cols; c += 256) top = fmaxf(top, float(x[c]));
  shared[threadIdx.x] = top;
  for (int step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step)
      shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
  }
  __syncthreads();
  top = shared[0];
  __syncthreads();
  float sum = 0;
  for (long long c = threadIdx.x; c < cols; c += 256) sum += __expf(float(x[c]) - top);
  shared[threadIdx.x] = sum;
  for (int step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
  }
  __syncthreads();
  const float inverse = 1 / shared[0];
  for (long long c = threadIdx.x; c < cols; c += 256) y[c] = T(__expf(float(x[c]) - top) * inverse);
}

extern "C" __global__ void softmax_float32(const float *x, float *y, long long cols) {
  softmax_row(x, y, cols);
}
extern "C" __global__ void softmax_bfloat16(const __nv_bfloat16 *x, __nv_bfloat16 *y, long long cols) {
  softmax_row(x, y, cols);
}
"""


def prepare(ctx):
    return cupy.RawModule(code=SOURCE, options=("-std=c++17",), backend="nvrtc")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    kernel = state.get_function("softmax_" + str(inputs.x.dtype).split(".")[1])
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        kernel((rows,), (256,), (inputs.x.data_ptr(), outputs.y.data_ptr(), cols))
