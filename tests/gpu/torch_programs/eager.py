# SPDX-License-Identifier: Apache-2.0
"""Runs programs as torch does, without kjudge: eager.py FOLDER RUNS NAME...

With REBUILD_RUN_LIBRARY and BUNDLE in the environment, rebuilds and times that bundle in the same
process afterwards, and prints what rebuild_run prints on a second line.

Writes FOLDER/NAME.x.in and FOLDER/NAME.y.eager, RUNS tensors each, and prints JSON: by name the
elements in and out, the time of the program's graph, and the memory that it holds (weights,
workspaces) beside x and y. Processes with the same FOLDER use the GPU one after another.
"""

import ctypes
import fcntl
import json
import os
import sys

import torch

import programs

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from _graph import graph_ns  # noqa: E402


def program_ns(function, x, y):
    stream = torch.cuda.Stream()

    def launch():
        y.copy_(function(x).reshape(-1))

    with torch.cuda.stream(stream):
        for _ in range(3):
            launch()
    return graph_ns(launch, stream)


def main(folder, runs, names):
    told = {}
    for name in names:
        before = torch.cuda.memory_allocated()
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
        # A tensor of its own: onto itself, where a program returns its buffer, torch copies nothing.
        native_ns = program_ns(function, x, y.clone())
        held = torch.cuda.memory_allocated() - before - 4 * (x.numel() + y.numel())
        told[name] = {"n": size, "m": y.numel(), "native_ns": native_ns, "held_bytes": held}
        function = x = y = None
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
    print(json.dumps(told), flush=True)
    if "BUNDLE" in os.environ:
        library = ctypes.CDLL(os.environ["REBUILD_RUN_LIBRARY"])
        if library.rebuild_run(os.environ["BUNDLE"].encode(), folder.encode(), runs, 40) != 0:
            sys.exit(1)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    with open(os.path.join(sys.argv[1], "gpu.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
