# SPDX-License-Identifier: Apache-2.0
"""What a launch can carry (cuda/features.cu) is rebuilt with it: grid barriers, clusters of 16 blocks,
programmatic dependent launches, priorities, large shared memory, copies. Each gives y = 2 x + 1."""

import array
import json
import os
import random
import sys
import unittest

from _gpu import HERE, Case, python

SOURCE = os.path.join(HERE, "cuda")
sys.path.insert(0, SOURCE)
import extension  # noqa: E402

N = 1 << 22


class Features(Case):
    def test_every_feature(self):
        native = json.loads(python(os.path.join(SOURCE, "native.py"), str(N)))
        package = self.package(SOURCE, {name: {"feature": number + 1, "n": N, "m": N}
                                        for number, name in enumerate(extension.FEATURES)})
        bundle = self.path("features.kjb")
        self.captured(SOURCE, package, bundle)
        draw = random.Random(1)
        # Multiples of 1/8, for which 2 x + 1 is exact however it is computed.
        x = array.array("f", [draw.randrange(-1000, 1000) / 8 for _ in range(N)])
        expected = array.array("f", [2 * v + 1 for v in x])
        for name in extension.FEATURES:
            with open(self.path(name + ".x.in"), "wb") as file:
                x.tofile(file)
        told = self.replayed(bundle, 1, 40)
        for name in extension.FEATURES:
            ours = told["shapes"][name]["event_ns"]
            print("%-14s native %8.1f us  worker %8.1f us  ratio %.4f" %
                  (name, native[name] / 1e3, ours / 1e3, ours / native[name]))
            with self.subTest(name), open(self.path(name + ".y.out"), "rb") as file:
                self.assertTrue(file.read() == expected.tobytes())


if __name__ == "__main__":
    unittest.main()
