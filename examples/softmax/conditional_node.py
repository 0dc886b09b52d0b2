# SPDX-License-Identifier: Apache-2.0
"""Puts a conditional node into the recording."""

from ctypes import (Structure, byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p)

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


class ConditionalParameters(Structure):  # CUgraphNodeParams of type 13, CU_GRAPH_NODE_TYPE_CONDITIONAL
    _fields_ = [("type", c_int), ("reserved", c_int * 3), ("handle", c_uint64), ("kind", c_int),
                ("size", c_uint), ("graphs", c_void_p), ("context", c_void_p), ("rest", c_ubyte * 208)]


def kernel_fn(state, inputs, outputs):
    state.launch(64, 1, outputs.y, inputs.x, inputs.x.size)
    graph = captured_graph(driver.current_stream())
    if graph:
        context, handle, node = c_void_p(), c_uint64(), c_void_p()
        driver.call("cuCtxGetCurrent", byref(context))
        driver.call("cuGraphConditionalHandleCreate", byref(handle), graph, context, c_uint(1), c_uint(1))
        parameters = ConditionalParameters(type=13, handle=handle.value, kind=0, size=1, context=context)
        driver.call("cuGraphAddNode", byref(node), graph, None, c_size_t(0), byref(parameters))
