// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

// A kernel that starts another: compiled with -rdc=true and linked with cudadevrt.
__global__ void started(const float *x, float *y, long n) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i];
}

__global__ void starts(const float *x, float *y, long n) {
  started<<<(n + 255) / 256, 256>>>(x, y, n);
}

extern "C" int start(const float *x, float *y, long n, cudaStream_t stream) {
  starts<<<1, 1, 0, stream>>>(x, y, n);
  return cudaGetLastError();
}
