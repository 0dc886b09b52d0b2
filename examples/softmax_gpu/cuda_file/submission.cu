// SPDX-License-Identifier: Apache-2.0
// Softmax of rows. Short rows: a warp each, in registers. Long rows: a block each, two passes; what
// the first pass reads is mostly still in the L2 when the second wants it.
//
// kjudge_build: -std=c++17 -use_fast_math

#include <cuda_bf16.h>
#include <float.h>
#include <kjudge/submission.h>

namespace {

constexpr int kWarp = 32;
constexpr int kRowsPerBlock = 8;  // of short rows
constexpr int kShort = 1024;      // the longest short row
constexpr int kThreads = 512;     // of a long row
constexpr unsigned kAll = 0xffffffffu;

__device__ float to_float(float x) { return x; }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float* to, float x) { *to = x; }
__device__ void store(__nv_bfloat16* to, float x) { *to = __float2bfloat16(x); }

// The largest value so far and the sum of exp(value - largest). -FLT_MAX, not -infinity: the
// difference of two of them is a number.
struct Running {
  float largest = -FLT_MAX, sum = 0;

  __device__ void add(const Running& other) {
    const float now = fmaxf(largest, other.largest);
    sum = sum * __expf(largest - now) + other.sum * __expf(other.largest - now);
    largest = now;
  }
};

template <class T>
__global__ void short_rows(T* y, const T* x, int64_t rows, int cols) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= rows) return;
  x += row * cols;
  y += row * cols;
  float values[kShort / kWarp];
  float largest = -FLT_MAX;
#pragma unroll
  for (int i = 0; i < kShort / kWarp; ++i) {
    const int c = i * kWarp + threadIdx.x;
    values[i] = c < cols ? to_float(x[c]) : -INFINITY;
    largest = fmaxf(largest, values[i]);
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, step));
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kShort / kWarp; ++i) {
    values[i] = __expf(values[i] - largest);
    sum += values[i];
  }
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step);
  const float scale = 1 / sum;
#pragma unroll
  for (int i = 0; i < kShort / kWarp; ++i) {
    const int c = i * kWarp + threadIdx.x;
    if (c < cols) store(y + c, values[i] * scale);
  }
}

__device__ Running warp_total(Running mine) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    Running other;
    other.largest = __shfl_xor_sync(kAll, mine.largest, step);
    other.sum = __shfl_xor_sync(kAll, mine.sum, step);
    mine.add(other);
  }
  return mine;
}

// kCount values at a time: 16 bytes where the rows are aligned to that.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) long_rows(T* y, const T* x, int64_t cols) {
  struct alignas(sizeof(T) * kCount) Piece {
    T values[kCount];
  };
  const int64_t pieces = cols / kCount;
  const Piece* from = reinterpret_cast<const Piece*>(x + blockIdx.x * cols);
  Piece* to = reinterpret_cast<Piece*>(y + blockIdx.x * cols);

  Running mine;
  for (int64_t i = threadIdx.x; i < pieces; i += kThreads) {
    const Piece piece = from[i];
    float largest = mine.largest;
#pragma unroll
    for (int j = 0; j < kCount; ++j) largest = fmaxf(largest, to_float(piece.values[j]));
    mine.sum *= __expf(mine.largest - largest);
    mine.largest = largest;
#pragma unroll
    for (int j = 0; j < kCount; ++j) mine.sum += __expf(to_float(piece.values[j]) - largest);
  }

  __shared__ Running of_warp[kThreads / kWarp];
  mine = warp_total(mine);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  mine = of_warp[threadIdx.x % (kThreads / kWarp)];
  if (threadIdx.x % kWarp >= kThreads / kWarp) mine = Running{};
  const Running total = warp_total(mine);
  const float scale = 1 / total.sum;

  for (int64_t i = threadIdx.x; i < pieces; i += kThreads) {
    Piece piece = from[i];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      store(&piece.values[j], __expf(to_float(piece.values[j]) - total.largest) * scale);
    }
    to[i] = piece;
  }
}

template <class T>
void softmax(void* out, const void* in, int64_t rows, int64_t cols, cudaStream_t stream) {
  T* y = static_cast<T*>(out);
  const T* x = static_cast<const T*>(in);
  constexpr int kCount = 16 / sizeof(T);
  if (cols <= kShort) {
    const auto blocks = static_cast<unsigned>((rows + kRowsPerBlock - 1) / kRowsPerBlock);
    short_rows<<<blocks, dim3(kWarp, kRowsPerBlock), 0, stream>>>(y, x, rows,
                                                                  static_cast<int>(cols));
  } else if (cols % kCount == 0) {
    long_rows<T, kCount><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(y, x, cols);
  } else {
    long_rows<T, 1><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(y, x, cols);
  }
}

}  // namespace

extern "C" int kernel_fn(const kjudge_shape* shape, void* const* inputs, void* const* outputs,
                         cudaStream_t stream) {
  const int64_t rows = kjudge_dim_of(shape, "rows"), cols = kjudge_dim_of(shape, "cols");
  if (shape->inputs[0].dtype == KJUDGE_FLOAT32) {
    softmax<float>(outputs[0], inputs[0], rows, cols, stream);
  } else {
    softmax<__nv_bfloat16>(outputs[0], inputs[0], rows, cols, stream);
  }
  return cudaGetLastError();
}
