// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

// Memory from the device's own heap, which no replay has.
__global__ void allocates(const float *x, float *y, long n) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  float *const kept = static_cast<float *>(malloc(sizeof(float)));
  if (kept == nullptr) return;
  *kept = x[i];
  y[i] = *kept;
  free(kept);
}

extern "C" int allocate(const float *x, float *y, long n, cudaStream_t stream) {
  allocates<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
  return cudaGetLastError();
}
