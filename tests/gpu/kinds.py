# SPDX-License-Identifier: Apache-2.0
"""A submission of each kind (examples/softmax_gpu): rebuilt in another process, it gives on 100 inputs
the bits that its kernel_fn gives in plain Python."""

import json
import os
import shutil
import unittest

from _gpu import BINARY, HERE, ROOT, Case, python, run

KINDS = os.path.join(ROOT, "examples", "softmax_gpu")
RUNS = 100
SIZES = {"float32": (512, 1024), "bfloat16": (257, 4096)}


def spec(name, dtype, rows, cols):
    return {"name": name, "dtype": dtype, "dims": [rows, cols]}


class Kinds(Case):
    def setUp(self):
        super().setUp()
        # What an autotuner chose, and with it the order of sums, is the same in both processes.
        os.environ.update(TRITON_CACHE_AUTOTUNING="1", TRITON_CACHE_DIR=self.path("triton"),
                          TORCHINDUCTOR_CACHE_DIR=self.path("inductor"))
        self.challenge = self.path("softmax")
        shutil.copytree(os.path.join(ROOT, "packages", "softmax"), self.challenge)
        file = os.path.join(self.challenge, "challenge.json")
        with open(file) as old:
            challenge = json.load(old)
        challenge["tests"] = []
        challenge["shapes"] = [
            {"arch": "sm_*", "dtype": dtype, "name": dtype, "dims": {"rows": rows, "cols": cols}}
            for dtype, (rows, cols) in SIZES.items()]
        with open(file, "w") as new:
            json.dump(challenge, new)
        self.shapes = [{"name": dtype, "timed": True, "arch": "sm_90", "dtype": dtype, "scalars": {},
                        "dims": {"rows": rows, "cols": cols},
                        "inputs": [spec("x", dtype, rows, cols)],
                        "outputs": [spec("y", dtype, rows, cols)]}
                       for dtype, (rows, cols) in SIZES.items()]

    def gives_its_own_bits(self, kind):
        path = source = os.path.join(KINDS, kind)
        if os.path.isdir(path):
            names = [n for n in ("submission.py", "submission.cu") if os.path.exists(os.path.join(path, n))]
            source = os.path.join(path, names[0])
        python(os.path.join(HERE, "eager_kind.py"), source, json.dumps(self.shapes), self.folder, str(RUNS))
        bundle = self.path("kind.kjb")
        self.captured(path, self.challenge, bundle)
        self.replayed(bundle, RUNS, 0)
        for shape in SIZES:
            with open(self.path(shape + ".y.out"), "rb") as ours, \
                    open(self.path(shape + ".y.eager"), "rb") as eager:
                self.assertTrue(ours.read() == eager.read(), shape)

    def test_a_reference_that_synchronises(self):
        """It cannot be recorded, and is called in a Python process of its own."""
        with open(os.path.join(self.challenge, "reference.py"), "w") as file:
            file.write("import torch\n\n\ndef kernel_fn(state, inputs, outputs):\n"
                       "    y = torch.softmax(inputs.x.double(), 1)\n"
                       "    assert float(y.sum()) > 0\n    outputs.y.copy_(y)\n")
        path = os.path.join(self.challenge, "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        challenge["reference"] = "python"
        with open(path, "w") as file:
            json.dump(challenge, file)
        told = json.loads(run(BINARY, "selftest", os.path.join(KINDS, "triton_rows.py"), "--challenge",
                              self.challenge, "--pairs", "5", "--json"))
        self.assertEqual(told["verdict"], "accepted", told["message"])

    def test_profile(self):
        """Every kernel of the replay has its metrics."""
        told = json.loads(run(BINARY, "profile", os.path.join(KINDS, "triton_rows.py"), "--challenge",
                              self.challenge, "--shape", "float32", "--json"))
        kernel, = told["kernels"]
        print("%s: %d metrics" % (kernel["name"], len(kernel["metrics"])))
        self.assertIn("whole_row", kernel["name"])
        self.assertGreater(len(kernel["metrics"]), 20)


for kind in sorted(os.listdir(KINDS)):
    if not kind.startswith(("_", ".")):
        setattr(Kinds, "test_" + kind.removesuffix(".py"),
                lambda self, kind=kind: self.gives_its_own_bits(kind))


if __name__ == "__main__":
    unittest.main()
