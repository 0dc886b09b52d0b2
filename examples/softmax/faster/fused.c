// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>
#include <string.h>

// The baseline's three passes, over three rows at once: one loop takes the maximum of a row, the
// exponentials of the row before and the division of the one before that. So memory is read, the core
// computes and results leave at the same time. The exponentials wait in shared memory, and the results
// bypass the caches: the lines they go to need not be read first. A row too long for shared memory
// waits in its own place.

#ifdef __AVX512F__
enum { kLanes = 16 };
#else
enum { kLanes = 8 };
#endif
typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));

static inline Vector load(const float *at) {
  Vector v;
  memcpy(&v, at, sizeof v);
  return v;
}

static inline void store(float *at, Vector v) { memcpy(at, &v, sizeof v); }

static inline Vector choose(IntVector mask, Vector a, Vector b) {
  return (Vector)((mask & (IntVector)a) | (~mask & (IntVector)b));
}

static inline Vector larger(Vector a, Vector b) { return choose(a > b, a, b); }

// 2^t for t <= 0 within 2e-7; 0 below the smallest normal number.
static inline Vector exp2_of(Vector t) {
  const float kRound = 12582912.f;  // 1.5 * 2^23: adding it leaves the nearest integer in low bits
  const Vector shifted = t + kRound;
  const Vector r = t - (shifted - kRound);
  Vector p = r * 1.339086336e-3f + 9.676031918e-3f;
  p = p * r + 5.550357114e-2f;
  p = p * r + 2.402210749e-1f;
  p = p * r + 6.931471880e-1f;
  p = p * r + 1.f;
  const IntVector scaled = (IntVector)p + ((IntVector)shifted << 23);
  return (Vector)(scaled & (t > -126.f));
}

// The last, partial vector of a row; lanes beyond `count` hold `fill`.
static inline Vector load_part(const float *at, long count, float fill) {
  float lanes[kLanes];
  for (long i = 0; i < kLanes; ++i) lanes[i] = i < count ? at[i] : fill;
  return load(lanes);
}

#ifdef __AVX512F__
#define STREAM(at, v) __builtin_ia32_movntps512((at), (v))
#else
#define STREAM(at, v) __builtin_ia32_movntps256((at), (v))
#endif

enum { kMaximum = 1, kExponentials = 2, kDivision = 4 };
enum { kLine = 16 };  // values in a cache line: only whole lines are streamed

typedef struct {
  const float *in;
  float *exponentials, *out;
  float maximum, sum;
} Row;

// One pass over rows of `cols` values: `stages` of `first`, `second` and `third` in this order.
static inline __attribute__((always_inline)) void pass(int stages, long cols, Row *first, Row *second,
                                                       Row *third) {
  const float kLog2E = 1.44269504f, infinity = __builtin_inff();
  Vector maximum = (Vector){0} - infinity, sum = {0};
  // e^(x - maximum) as a power of 2. That the product is rounded shifts all exponents alike.
  const float shift = stages & kExponentials ? -second->maximum * kLog2E : 0;
  const float inverse = stages & kDivision ? 1.f / third->sum : 0;
  long head = 0;  // values before the first whole line of third->out
  if (stages & kDivision) {
    for (; head < cols && (uintptr_t)(third->out + head) % 64 != 0; ++head)
      third->out[head] = third->exponentials[head] * inverse;
  }
  long c = 0;
  for (; c + kLine <= cols - head; c += kLine) {
    for (long v = c; v < c + kLine; v += kLanes) {
      if (stages & kMaximum) maximum = larger(load(first->in + v), maximum);
      if (stages & kExponentials) {
        const Vector e = exp2_of(load(second->in + v) * kLog2E + shift);
        store(second->exponentials + v, e);
        sum += e;
      }
      if (stages & kDivision)
        STREAM(third->out + head + v, load(third->exponentials + head + v) * inverse);
    }
  }
  if (stages & kDivision) {
    for (long i = head + c; i < cols; ++i) third->out[i] = third->exponentials[i] * inverse;
  }
  for (; c < cols; c += kLanes) {
    const long left = cols - c < kLanes ? cols - c : kLanes;
    if (stages & kMaximum) maximum = larger(load_part(first->in + c, left, -infinity), maximum);
    if (stages & kExponentials) {
      const Vector e = exp2_of(load_part(second->in + c, left, -infinity) * kLog2E + shift);
      for (long i = 0; i < left; ++i) second->exponentials[c + i] = e[i];
      sum += e;  // 2^-inf is 0: lanes beyond the row add nothing
    }
  }
  if (stages & kMaximum) {
    first->maximum = maximum[0];
    for (int i = 1; i < kLanes; ++i)
      if (maximum[i] > first->maximum) first->maximum = maximum[i];
  }
  if (stages & kExponentials) {
    second->sum = 0;
    for (int i = 0; i < kLanes; ++i) second->sum += sum[i];
  }
}

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols),
          (long, rows_per_block)) {
  const long begin = block->index.x * rows_per_block;
  const long count = begin + rows_per_block < rows ? rows_per_block : rows - begin;
  // Half a page apart from a multiple of pages: a store of one row's exponentials that shared its place
  // in the page with a load of the other's would hold that load up.
  const long stride = (cols + 1023) / 1024 * 1024 + 512;
  const int shared = 8 * (size_t)stride <= block->shared_bytes;
  Row row[3];
  for (long i = 0; i < count + 2; ++i) {
    Row *first = &row[i % 3], *second = &row[(i + 2) % 3], *third = &row[(i + 1) % 3];
    const long r = begin + i;
    if (i < count) {
      first->in = in + r * cols;
      first->out = out + r * cols;
      first->exponentials = shared ? (float *)block->shared + (i % 2) * stride : first->out;
    }
    const int stages = (i < count ? kMaximum : 0) | (i >= 1 && i <= count ? kExponentials : 0) |
                       (i >= 2 ? kDivision : 0);
    switch (stages) {
      case kMaximum: pass(kMaximum, cols, first, second, third); break;
      case kExponentials: pass(kExponentials, cols, first, second, third); break;
      case kDivision: pass(kDivision, cols, first, second, third); break;
      case kMaximum | kExponentials: pass(kMaximum | kExponentials, cols, first, second, third); break;
      case kExponentials | kDivision: pass(kExponentials | kDivision, cols, first, second, third); break;
      default: pass(kMaximum | kExponentials | kDivision, cols, first, second, third);
    }
  }
  __builtin_ia32_sfence();
}
