# SPDX-License-Identifier: Apache-2.0
"""Calls a challenge's check.py for every replay: python3 call_check.py REQUEST.json SOCKET, started by
the supervisor (lib/replay/custom_checks.h) where an output has the check "custom".

    check(shape, regime, output, inputs, outputs, expected)

shape is a ShapeSpec, regime and output are names, the rest are Arguments. It returns how wrong the
output is, a number, or that with words for the contestant.
"""

import _python  # noqa: F401

import struct
import sys

import driver
from _arguments import Arguments, ShapeSpec
from call_reference import READ, load_module, map_memory, run, wrapper
from capture import torch_stream

JUDGE, JUDGED = 17, 18


class Check:
    def __init__(self, request):
        self.shapes = request["shapes"]
        self.submitted = request["submitted"]
        self.regimes = request["regimes"]
        self.arrays = [{} for _ in self.shapes]  # of the supervisor's memory, by the tensor's number
        self.arguments = {}
        self.stream = driver.Stream()
        self.module = None

    def specs(self, shape):
        """Inputs, expected outputs, outputs: the order of the tensors."""
        return (self.shapes[shape]["inputs"] + self.shapes[shape]["outputs"] +
                self.submitted[shape]["outputs"])

    def add_tensor(self, shape, tensor, size, descriptor):
        spec = self.specs(shape)[tensor]
        address = map_memory(descriptor, size, READ)
        self.arrays[shape][tensor] = driver.Array(address, spec["dims"], spec["dtype"])

    def prepare(self):
        self.module = load_module("check")
        if not callable(getattr(self.module, "check", None)):
            raise TypeError("it defines no check(shape, regime, output, inputs, outputs, expected)")
        wrap = wrapper()
        for index, shape in enumerate(self.shapes):
            if not self.arrays[index]:
                continue  # of a shape without such a check nothing is shared
            named = [(spec["name"], wrap(self.arrays[index][i]))
                     for i, spec in enumerate(self.specs(index))]
            inputs, outputs = len(shape["inputs"]), len(shape["outputs"])
            scalars = dict(shape["dims"], **shape["scalars"])
            self.arguments[index] = (Arguments(shape["name"], named[:inputs], scalars),
                                     Arguments(shape["name"], named[inputs + outputs:], {}),
                                     Arguments(shape["name"], named[inputs:inputs + outputs], {}))

    def call(self, index, regime, output):
        inputs, outputs, expected = self.arguments[index]
        shape = self.shapes[index]
        with self.stream, torch_stream(self.stream):
            said = self.module.check(ShapeSpec(shape), self.regimes[index][regime],
                                     shape["outputs"][output]["name"], inputs, outputs, expected)
        driver.synchronize()
        error, words = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
        if isinstance(error, bool) or not hasattr(error, "__float__"):
            raise TypeError("check() returned %.200s; it returns how wrong the output is, a number, or "
                            "(number, words)" % repr(said))
        text = "".join(c if c.isprintable() else " " for c in str(words))
        text = text.encode("ascii", "replace")[:900]
        return JUDGED, struct.pack("<dII900s4x", float(error), 0, len(text), text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run(Check, (JUDGE, "<III"), *sys.argv[1:])
