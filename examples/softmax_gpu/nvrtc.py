# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ compiled with NVRTC and launched through the driver, no framework at all."""

import ctypes
import os

import driver

SOURCE = rb"""
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


def compiled(source):
    nvrtc = ctypes.CDLL("libnvrtc.so.13")

    def check(result):
        if result != 0:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError("NVRTC error %d: %s" % (result, log.value.decode()))

    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"softmax.cu", 0, None, None))
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    options = [b"--gpu-architecture=sm_90", b"-I" + os.path.join(cuda, "include").encode()]
    check(nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    cubin = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, cubin))
    return cubin.raw


def prepare(ctx):
    with open("softmax.cubin", "wb") as file:
        file.write(compiled(SOURCE))
    return driver.load("softmax.cubin")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.kernel("softmax_" + inputs.x.dtype).launch(rows, 256, inputs.x, outputs.y, cols)
