// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>

// A block takes a row: its maximum and its sum in one pass, the quotients in a second.
template <class T>
__global__ void softmax_rows(const T *x, T *y, long cols) {
  __shared__ float tops[32], sums[32];
  x += blockIdx.x * cols;
  y += blockIdx.x * cols;
  float top = -INFINITY, sum = 0;
  for (long c = threadIdx.x; c < cols; c += blockDim.x) {
    const float v = static_cast<float>(x[c]), higher = fmaxf(top, v);
    sum = sum * __expf(top - higher) + __expf(v - higher);
    top = higher;
  }
  const auto join = [](float &top, float &sum, float other_top, float other_sum) {
    const float higher = fmaxf(top, other_top);
    if (higher == -INFINITY) return;
    sum = sum * __expf(top - higher) + other_sum * __expf(other_top - higher);
    top = higher;
  };
  for (int step = 16; step > 0; step /= 2)
    join(top, sum, __shfl_xor_sync(~0u, top, step), __shfl_xor_sync(~0u, sum, step));
  if (threadIdx.x % 32 == 0) {
    tops[threadIdx.x / 32] = top;
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  top = -INFINITY, sum = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) join(top, sum, tops[warp], sums[warp]);
  const float inverse = 1 / sum;
  for (long c = threadIdx.x; c < cols; c += blockDim.x)
    y[c] = static_cast<T>(__expf(static_cast<float>(x[c]) - top) * inverse);
}

void softmax(torch::Tensor x, torch::Tensor y) {
  const auto rows = static_cast<unsigned>(x.size(0));
  const long cols = x.size(1);
  const int threads = cols > 4096 ? 1024 : 128;
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  if (x.scalar_type() == torch::kFloat32) {
    softmax_rows<<<rows, threads, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), cols);
  } else {
    softmax_rows<<<rows, threads, 0, stream>>>(x.data_ptr<at::BFloat16>(), y.data_ptr<at::BFloat16>(),
                                               cols);
  }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
