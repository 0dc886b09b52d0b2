// SPDX-License-Identifier: Apache-2.0
// What tests/device_code_test.cc looks at, compiled once for each case.
#include <cassert>
#include <cstdio>

#if defined(CASE_PLAIN)
extern "C" __global__ void kernel(float* y) {
  assert(y != nullptr);
  printf("%f\n", y[threadIdx.x]);
}
#elif defined(CASE_HEAP)
extern "C" __global__ void kernel(float** y) {
  *y = static_cast<float*>(malloc(64));
  free(y[1]);
}
#elif defined(CASE_MANAGED)
__device__ float plain[4];
__managed__ float shared_value[4];
extern "C" __global__ void kernel(float* y) { *y = shared_value[1] + plain[1]; }
#elif defined(CASE_NEW)
extern "C" __global__ void kernel(float** y) { *y = new float[16]; }
#elif defined(CASE_ALIGNED)
extern "C" __global__ void kernel(void** y) { *y = __nv_aligned_device_malloc(64, 64); }
#elif defined(CASE_LAUNCH)
__global__ void child(float* y) { *y = 1; }
extern "C" __global__ void kernel(float* y) { child<<<1, 1>>>(y); }
#elif defined(CASE_GRAPH)
extern "C" __global__ void kernel(cudaGraphExec_t graph) {
  cudaGraphLaunch(graph, cudaStreamGraphTailLaunch);
}
#endif
