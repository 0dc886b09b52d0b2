# SPDX-License-Identifier: Apache-2.0
"""A reference that cannot be recorded is called by Python for every replay."""

import os

import _kjudge

# Computes on the host, which a capture does not allow.
REFERENCE = """
import math
import driver

calls = []

def prepare(ctx):
    assert sorted(s.name for s in ctx.shapes) == ["64x48", "test-3x5"]
    with open("written.txt", "w") as file:
        file.write("in a copy of the challenge")
    print("talk")
    return 1.0

def kernel_fn(state, inputs, outputs):
    driver.synchronize()
    rows = []
    for row in inputs.x.tolist():
        exps = [math.exp(v - max(row)) for v in row]
        rows.append([state * e / sum(exps) for e in exps])
    %s
"""
WRITES = "outputs.y.copy_from(rows)"


class PythonReference(_kjudge.Case):
    def challenge(self, how=WRITES, **changes):
        folder = self.small_challenge(**dict({"reference": "python"}, **changes))
        with open(os.path.join(folder, "reference.py"), "w") as file:
            file.write(REFERENCE % how)
        return folder

    def test_right_and_wrong(self):
        challenge = self.challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        result = self.evaluate(right, "--challenge", challenge)
        self.assertEqual(result["verdict"], "accepted", result["message"])
        self.assertTrue(result["score"]["ranked"])
        wrong = self.write("wrong.py", _kjudge.RIGHT.replace("y[c] /= sum", "y[c] /= sum * 1.001f"))
        result = self.evaluate(wrong, "--challenge", challenge, status=1)
        self.assertEqual(result["verdict"], "wrong_result", result["message"])
        self.assertFalse(os.path.exists(os.path.join(challenge, "written.txt")))
        self.assert_nothing_left()

    def test_returned_outputs(self):
        challenge = self.challenge("return driver.array(rows, 'float64')")
        right = self.write("right.py", _kjudge.RIGHT)
        result = self.evaluate(right, "--challenge", challenge, "--pairs", "1")
        self.assertEqual(result["verdict"], "accepted", result["message"])

    def test_outputs_that_are_not_written(self):
        challenge = self.challenge("pass")
        right = self.write("right.py", _kjudge.RIGHT)
        _, err = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
        self.assertIn("baseline.py against reference.py", err)  # nobody's fault who hands in

    def test_failures_name_the_reference(self):
        right = self.write("right.py", _kjudge.RIGHT)
        challenge = self.challenge("raise KeyError('row')")
        path = os.path.join(challenge, "reference.py")
        for code, words in (
                (None, "shape test-3x5: raised KeyError: 'row' (reference.py, line "),
                ("import os\ndef kernel_fn(s, i, o): os._exit(7)\n", "its process ended: exit status 7"),
                ("def prepare(ctx):\n    1 / 0\n", "raised ZeroDivisionError"),
                ("def kernel_fn(s, i, o): return 1\n", "returned a int for output y")):
            with self.subTest(words=words):
                if code:
                    with open(path, "w") as file:
                        file.write(code)
                _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
                self.assertIn("reference.py: ", error)
                self.assertIn(words, error)
        self.assert_nothing_left()

    def test_a_reference_that_writes_an_input(self):
        right = self.write("right.py", _kjudge.RIGHT)
        challenge = self.challenge("inputs.x.copy_from(rows)")
        _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
        self.assertIn("reference.py: ", error)

    def test_recorded_is_the_default_and_says_what_to_do(self):
        challenge = self.challenge(reference="recorded")
        right = self.write("right.py", _kjudge.RIGHT)
        _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
        self.assertIn('"reference": "python" in challenge.json', error)


if __name__ == "__main__":
    _kjudge.main()
