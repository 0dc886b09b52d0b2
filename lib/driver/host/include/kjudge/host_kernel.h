// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels for kjudge's host driver, which runs them on CPU cores behind the CUDA driver API.
//
// A module is an ordinary shared object (x86-64 ELF) made from C or C++ sources:
//
//   #include <kjudge/host_kernel.h>
//
//   KJ_KERNEL(scale, (float *, out), (const float *, in), (float, factor), (long, n)) {
//     for (long i = block->index.x; i < n; i += block->grid.x) out[i] = factor * in[i];
//   }
//
//   cc -O3 -march=native -fPIC -shared -I... -o scale.so scale.c
//
// cuModuleLoadData takes the bytes of scale.so, cuModuleGetFunction the name "scale", and
// cuLaunchKernel runs the body once for each block of the grid, on all cores, in any order. There are
// no threads inside a block: block->block says what the launch asked for, the body loops.
//
// In a kernel: no allocation, no locks shared with the rest of the process, no signals, no longjmp
// out of it. A wrong load or store is CUDA_ERROR_ILLEGAL_ADDRESS, a failed assert
// CUDA_ERROR_ASSERT, __builtin_trap CUDA_ERROR_ILLEGAL_INSTRUCTION, an integer division by zero
// CUDA_ERROR_LAUNCH_FAILED, an exception that leaves the body CUDA_ERROR_ASSERT; the kernel ends
// where it stands, without destructors. The process lives, the context does not.

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kj_dim3 {
  uint32_t x, y, z;
} kj_dim3;

// What a body sees as `block`.
typedef struct kj_block {
  kj_dim3 grid;         // blocks of the launch
  kj_dim3 block;        // threads of a block, as the launch has them
  kj_dim3 index;        // this block's place in the grid
  void *shared;         // dynamic shared memory, 64-byte aligned; zero in the first block that a
  size_t shared_bytes;  // core runs of a launch, then as the block before left it
} kj_block;

#define KJ_MAX_PARAMETERS 24

// One kernel in a module's table. Filled in by KJ_KERNEL; read by the driver.
typedef struct kj_kernel_entry {
  const char *name;
  void (*run)(const kj_block *block, const void *arguments);
  uint32_t parameter_count;
  uint32_t reserved[3];
  uint32_t sizes[KJ_MAX_PARAMETERS + 1];  // in bytes, then a 0; with the alignments, offsets follow
  uint32_t alignments[KJ_MAX_PARAMETERS + 1];  // as in a struct, as CUDA lays out parameter buffers
} __attribute__((aligned(64))) kj_kernel_entry;

// The table of a module: all its translation units together. `version` changes when anything here
// does.
#define KJ_TABLE_MAGIC UINT32_C(0x4b4a4854)
#define KJ_TABLE_VERSION 1
typedef struct kj_kernel_table {
  uint32_t magic;
  uint32_t version;
  const kj_kernel_entry *begin, *end;
  uint32_t threads;  // set by the driver when it loads the module
  uint32_t reserved;
} kj_kernel_table;

// Protected: seen by the driver, and never taken for the one of another module.
#define KJ_EXPORT __attribute__((visibility("protected")))

extern const kj_kernel_entry __start_kjudge_kernels[]
    __attribute__((weak, visibility("hidden")));
extern const kj_kernel_entry __stop_kjudge_kernels[]
    __attribute__((weak, visibility("hidden")));
extern kj_kernel_table kjudge_kernel_table KJ_EXPORT;
__attribute__((weak)) kj_kernel_table kjudge_kernel_table = {
    KJ_TABLE_MAGIC, KJ_TABLE_VERSION, __start_kjudge_kernels, __stop_kjudge_kernels, 1, 0};

#ifndef CLOCK_MONOTONIC  // strict C
extern int clock_gettime(int, struct timespec *);
#endif

// Cores that run blocks at the same time; a good grid is a small multiple of it.
static inline __attribute__((unused)) uint32_t kj_threads(void) {
  return kjudge_kernel_table.threads;
}

// Nanoseconds of the clock that events are timed with.
static inline __attribute__((unused)) uint64_t kj_global_timer(void) {
  struct timespec now;
  clock_gettime(1 /* CLOCK_MONOTONIC */, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// Atomic additions between blocks; return what was there before. Relaxed: the end of the launch
// orders them before whatever follows in the stream.
static inline __attribute__((unused)) int32_t kj_atomic_add_i32(int32_t *at, int32_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline __attribute__((unused)) uint32_t kj_atomic_add_u32(uint32_t *at, uint32_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline __attribute__((unused)) int64_t kj_atomic_add_i64(int64_t *at, int64_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline __attribute__((unused)) uint64_t kj_atomic_add_u64(uint64_t *at, uint64_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline __attribute__((unused)) float kj_atomic_add_f32(float *at, float value) {
  float before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do {
    after = before + value;
  } while (!__atomic_compare_exchange(at, &before, &after, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}
static inline __attribute__((unused)) double kj_atomic_add_f64(double *at, double value) {
  double before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do {
    after = before + value;
  } while (!__atomic_compare_exchange(at, &before, &after, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}

#ifdef __cplusplus
}  // extern "C"

static inline int32_t kj_atomic_add(int32_t *at, int32_t value) {
  return kj_atomic_add_i32(at, value);
}
static inline uint32_t kj_atomic_add(uint32_t *at, uint32_t value) {
  return kj_atomic_add_u32(at, value);
}
static inline int64_t kj_atomic_add(int64_t *at, int64_t value) {
  return kj_atomic_add_i64(at, value);
}
static inline uint64_t kj_atomic_add(uint64_t *at, uint64_t value) {
  return kj_atomic_add_u64(at, value);
}
static inline float kj_atomic_add(float *at, float value) { return kj_atomic_add_f32(at, value); }
static inline double kj_atomic_add(double *at, double value) {
  return kj_atomic_add_f64(at, value);
}
#define KJ_ALIGNOF(type) alignof(type)
#define KJ_NOTHROW noexcept
#define KJ_EXTERN extern "C"
#else
#define kj_atomic_add(at, value)                                                      \
  _Generic((at), int32_t *: kj_atomic_add_i32, uint32_t *: kj_atomic_add_u32,         \
           int64_t *: kj_atomic_add_i64, uint64_t *: kj_atomic_add_u64,               \
           float *: kj_atomic_add_f32, double *: kj_atomic_add_f64)((at), (value))
#define KJ_ALIGNOF(type) _Alignof(type)
#define KJ_NOTHROW
#define KJ_EXTERN extern
#endif

// KJ_VARIABLE(type, name) = initializer; a variable of the module, one for each load, that
// cuModuleGetGlobal finds by name. kjudge restores variables declared so before every replay;
// other static variables are not restored, and a kernel must not use them to remember anything.
#define KJ_VARIABLE(type, name) \
  KJ_EXTERN type name KJ_EXPORT; \
  __attribute__((section("kjudge_variables"), used)) type name

// KJ_KERNEL(name, (type, parameter), ...) { body }: up to 24 parameters of any type that can be
// copied as bytes, a struct among them; a type with a comma or an array needs a typedef.
#define KJ_KERNEL(...) KJ_KERNEL_(KJ_FIRST(__VA_ARGS__), KJ_COUNT(__VA_ARGS__), __VA_ARGS__)
#define KJ_KERNEL_(name, count, ...) KJ_KERNEL_2_(name, count, __VA_ARGS__)
#define KJ_KERNEL_2_(name, count, ...)                                                           \
  struct kj_arguments_##name {                                                                   \
    KJ_EACH_##count(KJ_FIELD, __VA_ARGS__) char kj_end;                                          \
  };                                                                                             \
  static inline void kj_body_##name(                                                             \
      __attribute__((unused)) const kj_block *block KJ_EACH_##count(KJ_PARAMETER, __VA_ARGS__)); \
  static void kj_run_##name(const kj_block *block, const void *kj_buffer) KJ_NOTHROW {           \
    __attribute__((unused)) const struct kj_arguments_##name *kj_in =                            \
        (const struct kj_arguments_##name *)kj_buffer;                                           \
    kj_body_##name(block KJ_EACH_##count(KJ_ARGUMENT, __VA_ARGS__));                             \
  }                                                                                              \
  static const kj_kernel_entry kj_entry_##name                                                   \
      __attribute__((section("kjudge_kernels"), used, aligned(64))) = {                          \
          #name,                                                                                 \
          kj_run_##name,                                                                         \
          count - 1,                                                                             \
          {0, 0, 0},                                                                             \
          {KJ_EACH_##count(KJ_SIZE, __VA_ARGS__) 0},                                             \
          {KJ_EACH_##count(KJ_ALIGNMENT, __VA_ARGS__) 0}};                                       \
  static inline void kj_body_##name(                                                             \
      __attribute__((unused)) const kj_block *block KJ_EACH_##count(KJ_PARAMETER, __VA_ARGS__))

#define KJ_FIELD(type, name) type name;
#define KJ_PARAMETER(type, name) , type name
#define KJ_ARGUMENT(type, name) , kj_in->name
#define KJ_SIZE(type, name) sizeof(type),
#define KJ_ALIGNMENT(type, name) KJ_ALIGNOF(type),

#define KJ_FIRST(...) KJ_FIRST_(__VA_ARGS__, 0)
#define KJ_FIRST_(first, ...) first
#define KJ_COUNT(...)                                                                          \
  KJ_COUNT_(__VA_ARGS__, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, \
            7, 6, 5, 4, 3, 2, 1, 0)
#define KJ_COUNT_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, \
                  _18, _19, _20, _21, _22, _23, _24, _25, count, ...)                         \
  count
#define KJ_EACH_1(macro, name)
#define KJ_EACH_2(macro, name, p) macro p
#define KJ_EACH_3(macro, name, p, ...) macro p KJ_EACH_2(macro, name, __VA_ARGS__)
#define KJ_EACH_4(macro, name, p, ...) macro p KJ_EACH_3(macro, name, __VA_ARGS__)
#define KJ_EACH_5(macro, name, p, ...) macro p KJ_EACH_4(macro, name, __VA_ARGS__)
#define KJ_EACH_6(macro, name, p, ...) macro p KJ_EACH_5(macro, name, __VA_ARGS__)
#define KJ_EACH_7(macro, name, p, ...) macro p KJ_EACH_6(macro, name, __VA_ARGS__)
#define KJ_EACH_8(macro, name, p, ...) macro p KJ_EACH_7(macro, name, __VA_ARGS__)
#define KJ_EACH_9(macro, name, p, ...) macro p KJ_EACH_8(macro, name, __VA_ARGS__)
#define KJ_EACH_10(macro, name, p, ...) macro p KJ_EACH_9(macro, name, __VA_ARGS__)
#define KJ_EACH_11(macro, name, p, ...) macro p KJ_EACH_10(macro, name, __VA_ARGS__)
#define KJ_EACH_12(macro, name, p, ...) macro p KJ_EACH_11(macro, name, __VA_ARGS__)
#define KJ_EACH_13(macro, name, p, ...) macro p KJ_EACH_12(macro, name, __VA_ARGS__)
#define KJ_EACH_14(macro, name, p, ...) macro p KJ_EACH_13(macro, name, __VA_ARGS__)
#define KJ_EACH_15(macro, name, p, ...) macro p KJ_EACH_14(macro, name, __VA_ARGS__)
#define KJ_EACH_16(macro, name, p, ...) macro p KJ_EACH_15(macro, name, __VA_ARGS__)
#define KJ_EACH_17(macro, name, p, ...) macro p KJ_EACH_16(macro, name, __VA_ARGS__)
#define KJ_EACH_18(macro, name, p, ...) macro p KJ_EACH_17(macro, name, __VA_ARGS__)
#define KJ_EACH_19(macro, name, p, ...) macro p KJ_EACH_18(macro, name, __VA_ARGS__)
#define KJ_EACH_20(macro, name, p, ...) macro p KJ_EACH_19(macro, name, __VA_ARGS__)
#define KJ_EACH_21(macro, name, p, ...) macro p KJ_EACH_20(macro, name, __VA_ARGS__)
#define KJ_EACH_22(macro, name, p, ...) macro p KJ_EACH_21(macro, name, __VA_ARGS__)
#define KJ_EACH_23(macro, name, p, ...) macro p KJ_EACH_22(macro, name, __VA_ARGS__)
#define KJ_EACH_24(macro, name, p, ...) macro p KJ_EACH_23(macro, name, __VA_ARGS__)
#define KJ_EACH_25(macro, name, p, ...) macro p KJ_EACH_24(macro, name, __VA_ARGS__)
