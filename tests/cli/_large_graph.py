# SPDX-License-Identifier: Apache-2.0
"""A challenge whose submission records one graph of as many kernels as asked for.

The kernels are launched by a C extension of the submission's own, as a contestant's would be who has
that many: calls from Python would take longer than all that kjudge does with them.
"""

import json
import os

# How the nodes hang together: one after the other; over four streams that fork from the first node
# and join in the last; or all between the first and the last.
WAYS = ["chain", "streams", "star"]

KERNELS = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(first, (int32_t *, y), (const int32_t *, x), (int32_t, more), (int64_t, n)) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + more;
}
KJ_KERNEL(add_one, (int32_t *, y), (int64_t, n)) {
  for (int64_t i = 0; i < n; ++i) kj_atomic_add(&y[i], 1);
}
"""

LAUNCHES = """
#include <stdint.h>
#include <stdlib.h>

typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraphNode_st *CUgraphNode;

int cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   CUstream, void **, void **);
int cuStreamCreate(CUstream *, unsigned);
int cuEventCreate(CUevent *, unsigned);
int cuEventRecord(CUevent, CUstream);
int cuStreamWaitEvent(CUstream, CUevent, unsigned);
int cuStreamIsCapturing(CUstream, int *);
int cuStreamGetCaptureInfo_v2(CUstream, int *, uint64_t *, void **, const CUgraphNode **, size_t *);
int cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode *, size_t, unsigned);

static CUgraphNode last_node(CUstream stream) {
  int status;
  uint64_t id;
  size_t count = 0;
  void *graph;
  const CUgraphNode *nodes = NULL;
  cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count);
  return count == 1 ? nodes[0] : NULL;
}

int launch(CUfunction first, CUfunction add_one, CUstream stream, int way, int64_t launches, uint64_t y,
           uint64_t x, int64_t n) {
  enum { kStreams = 4 };
  static CUstream streams[kStreams];
  static CUevent events[kStreams];
  int failed = 0, capturing = 0, more = 0;
  void *first_arguments[] = {&y, &x, &more, &n}, *arguments[] = {&y, &n};
  failed |= cuLaunchKernel(first, 1, 1, 1, 1, 1, 1, 0, stream, first_arguments, NULL);
  cuStreamIsCapturing(stream, &capturing);
  CUgraphNode *nodes = NULL, root = NULL;
  if (way == 2 && capturing) {
    nodes = malloc(launches * sizeof *nodes);
    root = last_node(stream);
  }
  if (way == 1) {
    for (int s = 0; s < kStreams; ++s) {
      if (streams[s] == NULL) failed |= cuStreamCreate(&streams[s], 1) | cuEventCreate(&events[s], 2);
    }
    failed |= cuEventRecord(events[0], stream);
    for (int s = 0; s < kStreams; ++s) failed |= cuStreamWaitEvent(streams[s], events[0], 0);
  }
  const int64_t between = launches - 2;
  for (int64_t i = 0; i < between && !failed; ++i) {
    if (nodes != NULL) failed |= cuStreamUpdateCaptureDependencies(stream, &root, 1, 1);
    failed |= cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, way == 1 ? streams[i % kStreams] : stream,
                             arguments, NULL);
    if (nodes != NULL) nodes[i] = last_node(stream);
  }
  if (way == 1) {
    for (int s = 0; s < kStreams; ++s) {
      failed |= cuEventRecord(events[s], streams[s]) | cuStreamWaitEvent(stream, events[s], 0);
    }
  }
  if (nodes != NULL) failed |= cuStreamUpdateCaptureDependencies(stream, nodes, between, 1);
  failed |= cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
  free(nodes);
  return failed;
}
"""

SUBMISSION = """
import ctypes
import os
import subprocess

import driver


def prepare(ctx):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    library = os.environ["KJUDGE_DRIVER_LIBRARY"]
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", "launches.so", "launches.c", library], check=True,
                   env=environment)
    launch = ctypes.CDLL(os.path.abspath("launches.so")).launch
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64,
                       ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64]
    return launch, driver.load(driver.build("kernels.c"))


def kernel_fn(state, inputs, outputs):
    launch, module = state
    failed = launch(module["first"].handle, module["add_one"].handle, driver.current_stream().handle,
                    inputs.way, inputs.launches, driver.address_of(outputs.y),
                    driver.address_of(inputs.x), inputs.x.shape[0])
    assert not failed, failed
"""

ONE_LAUNCH = """
import driver

KERNELS = '''%s'''


def prepare(ctx):
    with open("kernels.c", "w") as file:
        file.write(KERNELS)
    return driver.load(driver.build("kernels.c"))["first"]


def kernel_fn(first, inputs, outputs):
    first.launch(1, 1, outputs.y, inputs.x, inputs.launches - 1, inputs.x.shape[0])
""" % KERNELS


def write(folder, launches, ways=("chain",)):
    """Writes folder/challenge, with one shape for each way, and folder/submission."""
    challenge, submission = os.path.join(folder, "challenge"), os.path.join(folder, "submission")
    manifest = {
        "format": "kjudge-challenge/1", "name": "large-graph", "version": 1, "author": "kjudge",
        "title": "Graphs of many nodes",
        "tensors": {
            "inputs": [{"name": "x", "dtype": "int32", "shape": ["n"],
                        "generator": {"kind": "integers", "low": 0, "high": 1000}}],
            "outputs": [{"name": "y", "dtype": "int32", "shape": ["n"]}]},
        "shapes": [{"name": way, "arch": "x86_64", "dtype": "int32", "dims": {"n": 16},
                    "scalars": {"launches": launches, "way": WAYS.index(way)}} for way in ways],
    }
    files = {
        (challenge, "challenge.json"): json.dumps(manifest),
        (challenge, "TASK.md"): "Add one, again and again.\n",
        (challenge, "reference.py"): ONE_LAUNCH,
        (challenge, "baseline.py"): ONE_LAUNCH,
        (challenge, "submission.py"): ONE_LAUNCH,
        (submission, "kernels.c"): KERNELS,
        (submission, "launches.c"): LAUNCHES,
        (submission, "submission.py"): SUBMISSION,
    }
    for (where, name), text in files.items():
        os.makedirs(where, exist_ok=True)
        with open(os.path.join(where, name), "w") as file:
            file.write(text)
    return challenge, submission
