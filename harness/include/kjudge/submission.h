// SPDX-License-Identifier: Apache-2.0
#pragma once

// A submission in CUDA C++: one file submission.cu, or a folder with it at its root.
//
//   #include <kjudge/submission.h>
//
//   // kjudge_build: -std=c++20 -use_fast_math
//
//   extern "C" int kernel_fn(const kjudge_shape *shape, void *const *inputs, void *const *outputs,
//                            cudaStream_t stream) {
//     scale<<<64, 256, 0, stream>>>((float *)outputs[0], (const float *)inputs[0],
//                                   kjudge_dim_of(shape, "n"));
//     return cudaGetLastError();
//   }
//
// kjudge builds it with nvcc for the GPU that is judged on, as a shared object with the CUDA
// runtime in it. Lines that begin with "// kjudge_build:" hold flags for nvcc; which are allowed is
// in kjudge-challenge(5). kernel_fn is recorded once per shape, as a Python kernel_fn is: it
// launches everything on `stream`, and neither synchronizes nor copies from or to the host.

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kjudge_dtype {
  KJUDGE_FLOAT64 = 0,
  KJUDGE_FLOAT32 = 1,
  KJUDGE_FLOAT16 = 2,
  KJUDGE_BFLOAT16 = 3,
  KJUDGE_FLOAT8_E4M3 = 4,
  KJUDGE_FLOAT8_E5M2 = 5,
  KJUDGE_FLOAT4_E2M1 = 6,  // two to a byte, the first in the low bits
  KJUDGE_INT64 = 7,
  KJUDGE_INT32 = 8,
  KJUDGE_INT16 = 9,
  KJUDGE_INT8 = 10,
  KJUDGE_UINT8 = 11,
  KJUDGE_BOOL = 12  // one byte each, 0 or 1
} kjudge_dtype;

typedef struct kjudge_dim {
  const char* name;
  int64_t size;
} kjudge_dim;

// A scalar of the challenge. Both hold its value: `integer` rounded towards zero; true is 1.
typedef struct kjudge_scalar {
  const char* name;
  int64_t integer;
  double real;
} kjudge_scalar;

// Contiguous, the last dimension fastest; sizes in elements.
typedef struct kjudge_tensor {
  const char* name;
  const int64_t* sizes;
  int32_t rank;
  int32_t dtype;  // a kjudge_dtype
} kjudge_tensor;

// One shape of the challenge. It and all it points to live as long as the process, unchanged.
typedef struct kjudge_shape {
  const char* name;
  const kjudge_dim* dims;
  const kjudge_scalar* scalars;
  const kjudge_tensor* inputs;   // in the order of kernel_fn's `inputs`
  const kjudge_tensor* outputs;  // in the order of kernel_fn's `outputs`
  int32_t dim_count, scalar_count, input_count, output_count;
} kjudge_shape;

struct CUstream_st;

// To be defined. `inputs` and `outputs` are device addresses, aligned to 256 bytes at least, and
// differ from call to call. Returns 0, or a cudaError_t: then the verdict follows from it
// (out_of_memory, gpu_fault, refused for a call that a capture forbids, else runtime_error).
int kernel_fn(const kjudge_shape* shape, void* const* inputs, void* const* outputs,
              struct CUstream_st* stream);

// May be defined: called once, before kernel_fn, with all shapes that will come. The place to
// allocate, to make handles, to compute tables. Returns as kernel_fn does.
int prepare(const kjudge_shape* shapes, int count);

// Size of a dimension of the challenge by its name; -1: there is none.
static inline int64_t kjudge_dim_of(const kjudge_shape* shape, const char* name) {
  for (int32_t i = 0; i < shape->dim_count; ++i) {
    if (strcmp(shape->dims[i].name, name) == 0) return shape->dims[i].size;
  }
  return -1;
}

// A scalar of the challenge by its name; null: there is none.
static inline const kjudge_scalar* kjudge_scalar_of(const kjudge_shape* shape, const char* name) {
  for (int32_t i = 0; i < shape->scalar_count; ++i) {
    if (strcmp(shape->scalars[i].name, name) == 0) return &shape->scalars[i];
  }
  return NULL;
}

#ifdef __CUDACC__
// For kjudge: a launch that failed and that nobody asked about, and words for an error. The runtime
// is inside the submission's object, where only the object's own code reaches it.
__attribute__((weak)) int kjudge_last_error(void) { return (int)cudaGetLastError(); }
__attribute__((weak)) const char* kjudge_error_name(int error) {
  return cudaGetErrorName((cudaError_t)error);
}
#endif

#ifdef __cplusplus
}
#endif
