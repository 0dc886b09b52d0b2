# SPDX-License-Identifier: Apache-2.0
"""What a launch can carry (cuda/features.cu) is rebuilt with it: grid barriers, clusters of 16 blocks,
programmatic dependent launches, priorities, large shared memory, copies, attributes that leave the bits
as they are. Each gives y = 2 x + 1. That every attribute is set again is shown by
rebuild_test.cc and capture_test.py."""

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

SMALL, LARGE = 1 << 15, 1 << 22


class Features(Case):
    def replayed_on(self, runs, n, launches):
        """What rebuild_run tells of `runs` inputs of n elements, whose outputs are right."""
        package = self.package(SOURCE, {name: {"feature": number + 1, "n": n, "m": n}
                                        for number, name in enumerate(extension.FEATURES)}, str(n))
        bundle = self.path("%d.kjb" % n)
        self.captured(SOURCE, package, bundle)
        draw = random.Random(1)
        # Multiples of 1/8, for which 2 x + 1 is exact however it is computed.
        x = array.array("f", [draw.randrange(-1000, 1000) / 8 for _ in range(runs * n)])
        expected = array.array("f", [2 * v + 1 for v in x]).tobytes()
        for name in extension.FEATURES:
            with open(self.path(name + ".x.in"), "wb") as file:
                x.tofile(file)
        told = self.replayed(bundle, runs, launches)
        for name in extension.FEATURES:
            with self.subTest(name), open(self.path(name + ".y.out"), "rb") as file:
                self.assertTrue(file.read() == expected)
        return told

    def test_bits_on_100_inputs(self):
        self.replayed_on(100, SMALL, 0)

    def test_times(self):
        native = json.loads(python(os.path.join(SOURCE, "native.py"), str(LARGE)))
        told = self.replayed_on(1, LARGE, 40)
        for name in extension.FEATURES:
            ours = told["shapes"][name]["event_ns"]
            print("%-14s native %8.1f us  worker %8.1f us  ratio %.4f" %
                  (name, native[name] / 1e3, ours / 1e3, ours / native[name]))


if __name__ == "__main__":
    unittest.main()
