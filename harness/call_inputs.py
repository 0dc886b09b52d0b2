# SPDX-License-Identifier: Apache-2.0
"""Calls a challenge's inputs.py for every replay: python3 call_inputs.py REQUEST.json SOCKET, started
by the supervisor (lib/replay/challenge_python.h) where an input's generator is "python".

    fill(shape, regime, seed, inputs)    shape: ShapeSpec; regime: its name; inputs: Arguments

The inputs are the supervisor's device memory: those of other generators are made already, those of
"python" are zeros. The same seed must give the same inputs.
"""

import _python  # noqa: F401

import sys

import driver
from _arguments import Arguments, ShapeSpec
from call_reference import READ_WRITE, load_module, map_memory, run, wrapper
from capture import torch_stream

FILL = 16


class Inputs:
    def __init__(self, request):
        self.shapes = request["shapes"]
        self.regimes = request["regimes"]
        self.arrays = [{} for _ in self.shapes]  # of the supervisor's memory, by the tensor's number
        self.arguments = []
        self.stream = driver.Stream()
        self.module = None

    def add_tensor(self, shape, tensor, size, descriptor):
        spec = self.shapes[shape]["inputs"][tensor]
        address = map_memory(descriptor, size, READ_WRITE)
        self.arrays[shape][tensor] = driver.Array(address, spec["dims"], spec["dtype"])

    def prepare(self):
        self.module = load_module("inputs")
        if not callable(getattr(self.module, "fill", None)):
            raise TypeError("it defines no fill(shape, regime, seed, inputs)")
        wrap = wrapper()
        self.arguments = [
            Arguments(shape["name"], [(spec["name"], wrap(arrays[i]))
                                      for i, spec in enumerate(shape["inputs"])],
                      dict(shape["dims"], **shape["scalars"]))
            for shape, arrays in zip(self.shapes, self.arrays)]

    def call(self, index, regime, seed):
        with self.stream, torch_stream(self.stream):
            self.module.fill(ShapeSpec(self.shapes[index]), self.regimes[index][regime], seed,
                             self.arguments[index])
        driver.synchronize()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run(Inputs, (FILL, "<IIQ"), *sys.argv[1:])
