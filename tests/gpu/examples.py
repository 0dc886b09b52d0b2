# SPDX-License-Identifier: Apache-2.0
"""Every example for GPUs gets its verdict, and both challenges judge their own baseline as 1."""

import json
import os
import unittest

from _gpu import BINARY, ROOT, Case, run

EXAMPLES = os.path.join(ROOT, "examples")


class Examples(Case):
    def evaluate(self, path, challenge, pairs, accepted=True):
        environment = dict(os.environ, KJUDGE_DRIVER="cuda")
        result = json.loads(run(BINARY, "selftest", path, "--challenge",
                                os.path.join(ROOT, "packages", challenge), "--pairs", str(pairs), "--json",
                                status=0 if accepted else 1, env=environment))
        print("%s: %s" % (os.path.relpath(path, ROOT), result["verdict"]), result["message"])
        for shape in (result["score"] or {}).get("shapes", []):
            print("    %-22s %.3f [%.3f, %.3f]  baseline %9.1f us  submission %9.1f us" % (
                shape["name"], shape["speedup"], shape["interval"]["low"], shape["interval"]["high"],
                shape["baseline_ns"] / 1e3, shape["submission_ns"] / 1e3), flush=True)
        return result

    def test_table(self):
        with open(os.path.join(EXAMPLES, "expected_gpu.json")) as file:
            table = json.load(file)
        there = {"softmax_gpu/" + name for name in os.listdir(os.path.join(EXAMPLES, "softmax_gpu"))
                 if not name.startswith(("_", "."))}
        self.assertEqual(there, set(table))
        for name, expected in table.items():
            with self.subTest(name):
                result = self.evaluate(os.path.join(EXAMPLES, name), "softmax", 5,
                                       expected["verdict"] == "accepted")
                self.assertEqual(result["verdict"], expected["verdict"],
                                 result["message"] + result["log"][-3000:])

    def test_packages(self):
        for challenge in ("softmax", "matmul"):
            for name in ("submission.py", "baseline.py"):
                with self.subTest(challenge + "/" + name):
                    result = self.evaluate(os.path.join(ROOT, "packages", challenge, name), challenge, 30)
                    self.assertEqual(result["verdict"], "accepted", result["message"])


if __name__ == "__main__":
    unittest.main()
