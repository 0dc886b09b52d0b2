// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>
#include <string.h>

// Softmax of each row, three passes over it while it lies in a core's cache: the maximum, the
// exponentials with their sum, the division. A block takes rows_per_block rows.

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

static float row_maximum(const float *in, long cols) {
  Vector a = (Vector){0} - __builtin_inff(), b = a;
  long c = 0;
  for (; c + 2 * kLanes <= cols; c += 2 * kLanes) {
    a = larger(load(in + c), a);
    b = larger(load(in + c + kLanes), b);
  }
  a = larger(a, b);
  for (; c < cols; c += kLanes) {
    const long left = cols - c < kLanes ? cols - c : kLanes;
    a = larger(load_part(in + c, left, -__builtin_inff()), a);
  }
  float maximum = a[0];
  for (int i = 1; i < kLanes; ++i) maximum = a[i] > maximum ? a[i] : maximum;
  return maximum;
}

static float row_exponentials(float *out, const float *in, long cols, float maximum) {
  // e^(x - maximum) as a power of 2. That the product is rounded shifts all exponents alike.
  const float kLog2E = 1.44269504f, shift = -maximum * kLog2E;
  Vector a = {0}, b = {0};
  long c = 0;
  for (; c + 2 * kLanes <= cols; c += 2 * kLanes) {
    __builtin_prefetch(in + cols + c, 0, 2);  // the next row, into the second cache
    const Vector x = exp2_of(load(in + c) * kLog2E + shift);
    const Vector y = exp2_of(load(in + c + kLanes) * kLog2E + shift);
    store(out + c, x);
    store(out + c + kLanes, y);
    a += x;
    b += y;
  }
  a += b;
  for (; c < cols; c += kLanes) {
    const long left = cols - c < kLanes ? cols - c : kLanes;
    const Vector x = exp2_of(load_part(in + c, left, -__builtin_inff()) * kLog2E + shift);
    for (long i = 0; i < left; ++i) out[c + i] = x[i];
    a += x;  // 2^-inf is 0: lanes beyond the row add nothing
  }
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += a[i];
  return sum;
}

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols),
          (long, rows_per_block)) {
  const long first = block->index.x * rows_per_block;
  const long end = first + rows_per_block < rows ? first + rows_per_block : rows;
  for (long row = first; row < end; ++row) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    const float inverse = 1.f / row_exponentials(y, x, cols, row_maximum(x, cols));
    long c = 0;
    for (; c + kLanes <= cols; c += kLanes) store(y + c, load(y + c) * inverse);
    for (; c < cols; ++c) y[c] *= inverse;
  }
}
