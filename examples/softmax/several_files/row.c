// SPDX-License-Identifier: Apache-2.0
#include "row.h"

#include <math.h>

enum { kLanes = 16 };  // independent partial results, which the compiler keeps in vectors

float row_maximum(const float *row, long n) {
  float lane[kLanes];
  for (int k = 0; k < kLanes; ++k) lane[k] = row[0];
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lane[k] = row[i + k] > lane[k] ? row[i + k] : lane[k];
  }
  for (; i < n; ++i) lane[0] = row[i] > lane[0] ? row[i] : lane[0];
  for (int k = 1; k < kLanes; ++k) lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
  return lane[0];
}

float row_exponentials(float *out, const float *row, long n, float maximum) {
  double sum = 0;
  for (long i = 0; i < n; ++i) sum += out[i] = expf(row[i] - maximum);
  return (float)sum;
}
