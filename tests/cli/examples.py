# SPDX-License-Identifier: Apache-2.0
"""Every example gets the verdict, and a message with what the table says."""

import filecmp
import json
import os

import _kjudge

EXAMPLES = os.path.join(_kjudge.ROOT, "examples")


class Examples(_kjudge.Case):
    maxDiff = None

    def expected(self):
        with open(os.path.join(EXAMPLES, "expected.json")) as file:
            return json.load(file)

    def test_table_is_complete(self):
        there = set()
        for challenge in os.listdir(os.path.join(_kjudge.ROOT, "packages")):
            folder = os.path.join(EXAMPLES, challenge)
            if os.path.isdir(folder):
                there |= {challenge + "/" + name for name in os.listdir(folder)
                          if not name.startswith(("_", "."))}
        self.assertEqual(there, set(self.expected()))

    def test_baseline_example_is_the_baseline(self):
        package = os.path.join(_kjudge.ROOT, "packages", "softmax")
        example = os.path.join(EXAMPLES, "softmax", "baseline")
        for ours, theirs in (("baseline.py", "submission.py"), ("softmax.c", "softmax.c")):
            self.assertTrue(filecmp.cmp(os.path.join(package, ours), os.path.join(example, theirs),
                                        shallow=False), theirs)

    def test_verdicts(self):
        for name, expected in self.expected().items():
            with self.subTest(name):
                accepted = expected["verdict"] == "accepted"
                result = self.evaluate(os.path.join(EXAMPLES, name), "--pairs", "5", "--challenge",
                                       name.split("/")[0], status=0 if accepted else 1)
                told = result["message"] + "".join(s.get("message", "") for s in result["shapes"])
                self.assertEqual(result["verdict"], expected["verdict"], told + result["log"])
                if not accepted:
                    self.assertTrue(result["message"])
                for part in expected.get("message", []):
                    self.assertIn(part, told)
                self.assert_nothing_left()


if __name__ == "__main__":
    _kjudge.main()
