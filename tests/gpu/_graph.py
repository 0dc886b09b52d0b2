# SPDX-License-Identifier: Apache-2.0
"""A graph's time in plain torch, without kjudge."""

import torch


def graph_ns(launch, stream, launches=40):
    """Median time of the graph of what launch() puts on `stream`, in nanoseconds, on hot caches,
    behind a kernel that holds the stream, so that nothing of the host is in it. launch() must have
    run before."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        launch()
    times = []
    for _ in range(launches):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(400000)
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) * 1e6)
    return sorted(times)[launches // 2]
