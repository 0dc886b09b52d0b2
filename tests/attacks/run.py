# SPDX-License-Identifier: Apache-2.0
"""Every submission beside this file is an attack; its docstring says which, and the verdict it gets.

The controls go first: if one fails, the rest proves nothing.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import _kjudge  # noqa: E402

CONTROLS = ["correct.py", "wrong.py"]


class Attacks(_kjudge.Case):
    def judge(self, name, challenge):
        with open(os.path.join(HERE, name)) as file:
            expected = re.search(r"^verdict: (\w+)$", file.read(), re.MULTILINE)[1]
        result = self.evaluate(os.path.join(HERE, name), "--challenge", challenge, "--pairs", "5",
                               status=0 if expected == "accepted" else 1)
        self.assertEqual(result["verdict"], expected, result["message"] + result["log"][-2000:])
        self.assertLess(len(result["log"]), 2 << 20)
        if expected == "accepted":  # an attack that is only noise gains nothing by it
            speedups = [shape["speedup"] for shape in result["score"]["shapes"]]
            self.assertLess(max(speedups), 10)
        else:
            self.assertTrue(result["message"])
        self.assert_nothing_left()

    def test_attacks(self):
        challenge = self.small_challenge(cache="cold")
        attacks = sorted(n for n in os.listdir(HERE) if n.endswith(".py") and n != "run.py")
        for name in CONTROLS:
            self.judge(name, challenge)
        for name in attacks:
            if name not in CONTROLS:
                with self.subTest(name):
                    self.judge(name, challenge)


if __name__ == "__main__":
    _kjudge.main()
