# SPDX-License-Identifier: Apache-2.0
"""Graphs of many nodes go all the way: captured, dumped, rebuilt and replayed.

What took the square of the nodes would not end within the time-outs here, which are far above what it
takes; tests/bench/large_graph.py says how long.
"""

import json
import os
import subprocess

import _kjudge
import _large_graph

NODES = 20_000


class LargeGraph(_kjudge.Case):
    def peak_kib(self, *arguments):
        """Memory at its most, of a command that prints into the file out."""
        with open(self.path("out"), "w") as out:
            process = subprocess.Popen([_kjudge.BINARY, *arguments], cwd=self.folder, stdout=out,
                                       env=self.environment)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss

    def test_all_the_way(self):
        challenge, submission = _large_graph.write(self.folder, NODES, _large_graph.WAYS)
        self.run_kjudge("capture", submission, "-o", "s.kjb", "--challenge", challenge, timeout=60)
        text, _ = self.run_kjudge("dump", "s.kjb", timeout=60)
        # One stream: an edge from each to the next. Four: each node between has one, the last has one
        # from every stream and one from the first. A star: two for each node between.
        edges = {"chain": NODES - 1, "streams": NODES - 2 + 5, "star": 2 * (NODES - 2)}
        self.assertEqual([line for line in text.splitlines() if line.startswith("shape ")],
                         ["shape %d: %s, %d nodes, %d edges" % (i, way, NODES, edges[way])
                          for i, way in enumerate(_large_graph.WAYS)])
        # As JSON it is printed node by node, and takes no more memory than the bundle itself.
        self.assertLess(self.peak_kib("dump", "s.kjb", "--json"), self.peak_kib("dump", "s.kjb") + (64 << 10))
        with open(self.path("out")) as file:
            self.assertEqual(file.read(len("bundle")), "bundle")
        out, _ = self.run_kjudge("replay", "--submission", "s.kjb", "--challenge", challenge, "--pairs", "1",
                                 "--json", timeout=120)
        result = json.loads(out)
        self.assertEqual((result["verdict"], result["message"]), ("accepted", ""))
        self.assertEqual([shape["verdict"] for shape in result["shapes"]], ["accepted"] * 3)
        self.assert_nothing_left()


if __name__ == "__main__":
    _kjudge.main()
