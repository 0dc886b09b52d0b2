// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>
#include <math.h>

// What is right: every step in double, straight from the definition.

KJ_KERNEL(softmax_reference, (double *, out), (const float *, in), (long, rows), (long, cols)) {
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    double *y = out + row * cols;
    double maximum = x[0];
    for (long c = 1; c < cols; ++c) maximum = x[c] > maximum ? x[c] : maximum;
    double sum = 0;
    for (long c = 0; c < cols; ++c) sum += y[c] = exp(x[c] - maximum);
    for (long c = 0; c < cols; ++c) y[c] /= sum;
  }
}
