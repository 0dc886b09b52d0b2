# SPDX-License-Identifier: Apache-2.0
"""Runs programs as torch does, without kjudge: eager.py FOLDER RUNS NAME...

Writes FOLDER/NAME.x.in and FOLDER/NAME.y.eager, RUNS tensors each, and prints JSON: by name the
elements in and out and the time of the program's graph, launched on hot caches behind a kernel that
holds the stream, so that nothing of the host is in it.
"""

import json
import sys

import torch

import programs


def graph_ns(function, x, y, launches=30):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            y.copy_(function(x).reshape(-1))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        y.copy_(function(x).reshape(-1))
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


def main(folder, runs, names):
    told = {}
    for name in names:
        function = programs.make(name)
        size = programs.SIZES[name]
        generator = torch.Generator("cuda").manual_seed(7)
        with open("%s/%s.x.in" % (folder, name), "wb") as into, \
                open("%s/%s.y.eager" % (folder, name), "wb") as out:
            for _ in range(runs):
                x = torch.randn(size, device="cuda", generator=generator)
                y = function(x).reshape(-1).float().contiguous()
                into.write(x.cpu().numpy().tobytes())
                out.write(y.cpu().numpy().tobytes())
        told[name] = {"n": size, "m": y.numel(), "native_ns": graph_ns(function, x, y)}
        function = None
        torch.cuda.empty_cache()
    print(json.dumps(told))


if __name__ == "__main__":
    with torch.no_grad():
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
