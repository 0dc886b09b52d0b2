// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>
#include <string.h>

static float widened(uint16_t x) {
  const uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint16_t rounded(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float dot(const uint16_t *a, const uint16_t *b, long n, long k, long column) {
  float sum = 0;
  for (long i = 0; i < k; ++i) sum += widened(a[i]) * widened(b[i * n + column]);
  return sum;
}

KJ_KERNEL(product, (uint16_t *, c), (const uint16_t *, a), (const uint16_t *, b), (long, n),
          (long, k)) {
  const long row = block->index.x;
  for (long j = 0; j < n; ++j) c[row * n + j] = rounded(dot(a + row * k, b, n, k, j));
}

KJ_KERNEL(product32, (float *, c), (const uint16_t *, a), (const uint16_t *, b), (long, n),
          (long, k)) {
  const long row = block->index.x;
  for (long j = 0; j < n; ++j) c[row * n + j] = dot(a + row * k, b, n, k, j);
}

KJ_KERNEL(copy, (char *, c), (const char *, a), (long, rows), (long, row_bytes)) {
  const long first = 64l * block->index.x;
  const long count = rows - first < 64 ? rows - first : 64;
  memcpy(c + first * row_bytes, a + first * row_bytes, count * row_bytes);
}

KJ_KERNEL(widen, (float *, c), (const uint16_t *, a), (long, k)) {
  const long row = block->index.x;
  for (long i = 0; i < k; ++i) c[row * k + i] = widened(a[row * k + i]);
}
