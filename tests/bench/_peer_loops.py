# SPDX-License-Identifier: Apache-2.0
"""Timing loops that others use, written again from their description. Each gives microseconds of one
kernel: as that system runs it, and for as long as `budget` seconds of one process.

What they time is in torch, so that kjudge's recordings hold the same kernels (kernels/mixed.py).
"""

import statistics
import time

import torch

MIB = 1 << 20


class Kernel:
    """One shape of the mixed challenge: call() launches it; `fresh` draws new inputs; `right` checks."""

    def __init__(self, product, m, n, k):
        self.product, self.m, self.n, self.k = product, m, n, k
        self.seed = 42
        self.c = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
        self.fresh()

    def fresh(self):
        self.seed += 13
        generator = torch.Generator(device="cuda")
        generator.manual_seed(self.seed)
        self.a = torch.empty(self.m, self.k, dtype=torch.bfloat16, device="cuda")
        self.b = torch.empty(self.k, self.n, dtype=torch.bfloat16, device="cuda")
        self.a.uniform_(-1, 1, generator=generator)
        self.b.uniform_(-0.03, 0.03, generator=generator)

    def call(self):
        if self.product:
            torch.mm(self.a, self.b, out=self.c)
        else:
            torch.mul(self.a, 1, out=self.c)
        return self.c

    def right(self):
        expected = torch.mm(self.a.float(), self.b.float()) if self.product else self.a.float()
        return bool(torch.allclose(self.c.float(), expected, rtol=0.016, atol=0.02))


def event_pair(call):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3


def mean_of_events(kernel, budget):
    """3 calls to warm up, one dropped, then the mean of 10 event pairs, each after a fill of 256 MiB."""
    thrash = torch.empty(32 * MIB, dtype=torch.int64, device="cuda")

    def trial():
        torch.cuda.synchronize()
        thrash.fill_(42)
        torch.cuda.synchronize()
        return event_pair(kernel.call)

    for _ in range(3):
        kernel.call()
    trial()
    native = statistics.mean(trial() for _ in range(10))
    times, end = [], time.monotonic() + budget
    while not times or time.monotonic() < end:
        times.append(trial())
    return {"mean of 10": native, "mean, equal time": statistics.mean(times)}


def repeats_around_a_call(kernel, budget):
    """Up to 100 event pairs around the Python call, each on fresh inputs, after a fill of 256 MiB, its
    output checked; until the mean's standard error is 0.1 %, or 30 s of kernels, or 120 s have passed."""
    thrash = torch.empty(64 * MIB, dtype=torch.int32, device="cuda")

    def trial():
        kernel.fresh()
        thrash.fill_(1)
        torch.cuda.synchronize()
        duration = event_pair(kernel.call)
        if not kernel.right():
            raise RuntimeError("a wrong output")
        return duration

    kernel.call()
    if not kernel.right():
        raise RuntimeError("a wrong output")
    times, start = [], time.monotonic()
    for i in range(100):
        times.append(trial())
        if i < 2:
            continue
        mean = statistics.mean(times)
        error = statistics.stdev(times) / len(times) ** 0.5
        if error < 0.001 * mean or sum(times) > 30e6 or time.monotonic() - start > 120:
            break
    native = statistics.mean(times)
    times, end = [], time.monotonic() + budget
    while not times or time.monotonic() < end:
        times.append(trial())
    return {"100 repeats": native, "repeats, equal time": statistics.mean(times)}


def do_bench(kernel, budget):
    """Triton's own, 25 ms to warm up and 100 ms of calls."""
    import triton.testing
    native = triton.testing.do_bench(kernel.call, warmup=25, rep=100, return_mode="mean")
    longer = triton.testing.do_bench(kernel.call, warmup=25, rep=max(1, int(budget * 1e3)),
                                     return_mode="all")
    return {"do_bench": native * 1e3, "do_bench, equal time": statistics.mean(longer) * 1e3,
            "do_bench median, eq. time": statistics.median(longer) * 1e3}


LOOPS = {"do_bench": do_bench, "mean": mean_of_events, "repeats": repeats_around_a_call}


def measure(loop, shapes, budget):
    """Every shape in this process: {name: {what: microseconds}}."""
    torch.backends.cuda.matmul.allow_tf32 = False
    return {name: LOOPS[loop](Kernel(*shape), budget) for name, shape in shapes.items()}
