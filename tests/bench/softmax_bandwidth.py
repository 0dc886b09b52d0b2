#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Baseline of packages/softmax against this machine's copy bandwidth, bytes in and out counted once.

    softmax_bandwidth.py [KJUDGE]     exit 1 if a timed shape of 1 ms or more is below 60 %

The copy is a kernel of the host driver too, on the same cores from the same cold caches: memcpy, block
by block, which counts, and beside it stores that bypass the caches, which need not read what they
overwrite.
"""

import json
import os
import subprocess
import sys
import tempfile

import _bench

COPY = """
#include <kjudge/host_kernel.h>
#include <string.h>

KJ_KERNEL(copy, (float *, out), (const float *, in), (long, n), (long, per_block)) {
  const long first = block->index.x * per_block;
  const long left = n - first < per_block ? n - first : per_block;
  memcpy(out + first, in + first, 4 * left);
}

typedef long long Wide __attribute__((vector_size(16)));

KJ_KERNEL(stream, (float *, out), (const float *, in), (long, n), (long, per_block)) {
  const long first = block->index.x * per_block;
  const long left = n - first < per_block ? n - first : per_block;
  long i = 0;
  for (; i + 4 <= left; i += 4) {
    Wide v;
    memcpy(&v, in + first + i, sizeof v);
    __builtin_ia32_movntdq((Wide *)(out + first + i), v);
  }
  for (; i < left; ++i) out[first + i] = in[first + i];
  __builtin_ia32_sfence();
}
"""

MEASURE = """
import json, sys
sys.path.insert(0, %(harness)r)
import driver

module = driver.load(driver.build(%(source)r))
baseline = driver.load(driver.build(%(baseline)r)).kernel("softmax")
evict = driver.empty((256 << 20,), "uint8")
stream = driver.Stream()
best = {}
for rows, cols in %(shapes)r:
    n = rows * cols
    x, y = driver.zeros(n), driver.zeros(n)
    per_block = 1 << 14
    rows_per_block = max(1, per_block // cols)
    launches = {
        "copy": lambda: module["copy"].launch(-(-n // per_block), 1, y, x, n, per_block, stream=stream),
        "stream": lambda: module["stream"].launch(-(-n // per_block), 1, y, x, n, per_block,
                                                  stream=stream),
        "softmax": lambda: baseline.launch(-(-rows // rows_per_block), 1, y, x, rows, cols,
                                           rows_per_block, stream=stream),
    }
    times = {name: [] for name in launches}
    for _ in range(31):
        for name, launch in launches.items():
            driver.fill_bytes(evict, 0, stream)
            begin, end = driver.Event(timing=True), driver.Event(timing=True)
            begin.record(stream)
            launch()
            end.record(stream)
            stream.synchronize()
            times[name].append(end.milliseconds_since(begin))
    best["%%dx%%d" %% (rows, cols)] = {name: sorted(t)[len(t) // 2] for name, t in times.items()}
print(json.dumps(best))
"""


def main(arguments):
    kjudge = os.path.abspath(arguments[0]) if arguments else _bench.BINARY
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    package = os.path.join(root, "packages", "softmax")
    with open(os.path.join(package, "challenge.json")) as file:
        dims = [(s["dims"]["rows"], s["dims"]["cols"]) for s in json.load(file)["shapes"]
                if s["arch"] == "x86_64"]
    library = os.path.normpath(os.path.join(os.path.dirname(kjudge), "..", "lib", "kjudge"))
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "copy.c")
        with open(source, "w") as file:
            file.write(COPY)
        script = MEASURE % {"harness": os.path.join(library, "harness"), "source": source,
                            "baseline": os.path.join(package, "softmax.c"), "shapes": dims}
        environment = dict(os.environ, KJUDGE_DRIVER="host", TMPDIR=folder)
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True,
                              env=environment)
    worst = 1.0
    for (rows, cols), (name, times) in zip(dims, json.loads(done.stdout).items()):
        moved = 8e-6 * rows * cols
        copy = moved / times["copy"]
        softmax = moved / times["softmax"]
        print("%-12s copy %6.2f GB/s (streaming %6.2f)  softmax %6.2f GB/s (%.3f ms)  %5.1f %%" %
              (name, copy, moved / times["stream"], softmax, times["softmax"], 100 * softmax / copy))
        if times["softmax"] >= 1:
            worst = min(worst, softmax / copy)
    print("worst of the shapes of 1 ms or more: %.1f %%" % (100 * worst))
    return 0 if worst >= 0.6 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
