# SPDX-License-Identifier: Apache-2.0
"""Inputs that a challenge's inputs.py makes: hidden ones, and those of a capture."""

import json
import os

import _kjudge

INPUTS = """
import random

def fill(shape, regime, seed, inputs):
    assert shape.dims["rows"] == inputs.rows and inputs.shape == shape.name
    assert not any(sum(inputs.x.tolist(), []))
    values = random.Random(seed)
    high = {"nominal": 1, "large": 100}[regime]
    %s
"""
RIGHT_INPUTS = """inputs.x.copy_from([[values.uniform(0, high) for _ in range(inputs.cols)]
                        for _ in range(inputs.rows)])"""

# Tells what it was given.
REFERENCE = """
import math, sys

def kernel_fn(state, inputs, outputs):
    rows = inputs.x.tolist()
    print("drew %.17g" % max(map(max, rows)), rows, file=sys.stderr, flush=True)
    outputs.y.copy_from([[math.exp(v - max(row)) / sum(math.exp(w - max(row)) for w in row)
                          for v in row] for row in rows])
"""


class PythonInputs(_kjudge.Case):
    def challenge(self, fills=RIGHT_INPUTS, text=None):
        folder = self.small_challenge(rows=8, cols=6, reference="python")
        path = os.path.join(folder, "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        challenge["tensors"]["inputs"][0]["generator"] = {"kind": "python"}
        challenge["regimes"] = [{"name": "nominal", "pairs_per_round": 3},
                                {"name": "large", "pairs_per_round": 2}]
        with open(path, "w") as file:
            json.dump(challenge, file)
        for name, content in (("reference.py", REFERENCE), ("inputs.py", text or INPUTS % fills)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(content)
        return folder

    def test_right_and_wrong(self):
        challenge = self.challenge()
        out, err = self.run_kjudge("selftest", self.write("right.py", _kjudge.RIGHT), "--challenge",
                                   challenge, "--json")
        result = json.loads(out)
        self.assertEqual(result["verdict"], "accepted", result["message"])
        # Else the replay's made-up inputs were not those of the capture.
        self.assertEqual(result["message"], "")
        drawn = [line for line in err.splitlines() if line.startswith("drew ")]
        self.assertGreater(len(drawn), 30)
        self.assertEqual(len(set(drawn)), len(drawn))
        largest = [float(line.split()[1]) for line in drawn]
        self.assertTrue(any(v <= 1 for v in largest) and any(v > 10 for v in largest))
        wrong = self.write("wrong.py", _kjudge.RIGHT.replace("y[c] /= sum", "y[c] /= sum * 1.001f"))
        result = self.evaluate(wrong, "--challenge", challenge, status=1)
        self.assertEqual(result["verdict"], "wrong_result", result["message"])
        self.assert_nothing_left()

    def test_the_capture_runs_on_them(self):
        challenge = self.challenge()
        # Right only on what inputs.py makes, and says so where a capture can.
        eager = self.write("eager.py", _kjudge.RIGHT + """
_launch = kernel_fn


def kernel_fn(state, inputs, outputs):
    if kernel_fn.calls == 0:
        values = sum(inputs.x.tolist(), [])
        assert all(0 <= v <= 1 for v in values) and any(values), values
    kernel_fn.calls += 1
    _launch(state, inputs, outputs)


kernel_fn.calls = 0
""")
        result = self.evaluate(eager, "--challenge", challenge, "--pairs", "1")
        self.assertEqual(result["verdict"], "accepted", result["message"])

    def test_failures_are_the_challenges(self):
        right = self.write("right.py", _kjudge.RIGHT)
        challenge = self.challenge()
        path = os.path.join(challenge, "inputs.py")
        for text, words in (
                (INPUTS % "1 / 0", "raised ZeroDivisionError"),
                (INPUTS % "inputs.x.copy_from([[random.random() for _ in range(inputs.cols)] "
                          "for _ in range(inputs.rows)])", "the same seed gave other inputs"),
                (INPUTS % "inputs.x.copy_from([[(random if high > 1 else values).random() "
                          "for _ in range(inputs.cols)] for _ in range(inputs.rows)])",
                 "regime large: the same seed gave other inputs"),
                ("import os\ndef fill(s, r, seed, i): os._exit(7)\n", "its process ended: exit status 7"),
                ("def fil(): pass\n", "it defines no fill(shape, regime, seed, inputs)"),
                ("raise ImportError('no numpy')\n", "raised ImportError: no numpy")):
            with self.subTest(words=words):
                with open(path, "w") as file:
                    file.write(text)
                _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
                self.assertIn("inputs.py: ", error)
                self.assertIn(words, error)
        os.remove(path)
        _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
        self.assertIn("inputs.py: no such file", error)
        self.assert_nothing_left()

    def test_another_process_makes_the_same(self):
        """Also where inputs.py hashes words, which Python salts anew in each process."""
        challenge = self.challenge("values = random.Random(seed + hash(regime))\n    " + RIGHT_INPUTS)
        self.write("from/ada.py", _kjudge.RIGHT)
        _, first = self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge,
                                   "--unsafe")
        _, again = self.run_kjudge("replay", "--challenge", challenge, "--json", "--again",
                                   self.path("results/submissions/1/evaluations/1"))
        drawn = [{line for line in text.splitlines() if line.startswith("drew ")} for text in (first, again)]
        self.assertGreaterEqual(len(drawn[0] & drawn[1]), 30)

    def test_in_a_sandbox(self):
        if missing := self.sandbox_missing():
            self.skipTest(missing)
        self.write("from/ada.py", _kjudge.RIGHT)
        out, _ = self.run_kjudge("judge", "results", "--from", "from", "--challenge",
                                 self.challenge(), "--json")
        judged = json.loads(out)["judged"][0]
        self.assertEqual((judged["verdict"], judged["message"]), ("accepted", ""))


if __name__ == "__main__":
    _kjudge.main()
