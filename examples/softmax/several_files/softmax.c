// SPDX-License-Identifier: Apache-2.0
#include <kjudge/host_kernel.h>

#include "row.h"

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    const float inverse = 1 / row_exponentials(y, x, cols, row_maximum(x, cols));
    for (long c = 0; c < cols; ++c) y[c] *= inverse;
  }
}
