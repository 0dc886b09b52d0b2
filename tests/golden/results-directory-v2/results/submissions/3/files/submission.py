
import driver

SOURCE = '''
#include <kjudge/host_kernel.h>
#include <math.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    float maximum = x[0];
    for (long c = 1; c < cols; ++c) maximum = fmaxf(maximum, x[c]);
    float sum = 0;
    for (long c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - maximum);
    for (long c = 0; c < cols; ++c) y[c] /= sum;
  }
}
'''


def prepare(ctx):
    with open("softmax.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("softmax.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.launch(min(rows, 64), 1, outputs.y, inputs.x, rows, cols)

# again
