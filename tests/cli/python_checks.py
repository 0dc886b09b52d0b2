# SPDX-License-Identifier: Apache-2.0
"""Outputs that a challenge's check.py judges: by itself or beside kjudge's checks, each replay or all of
an evaluation."""

import json
import os

import _kjudge

# The largest error of any element, but the columns of a row may come in any order.
CHECK = """
import sys

def check(shape, regime, output, inputs, outputs, expected):
    assert output == "y" and regime in ("nominal", "large") and inputs.shape == shape.name
    assert shape.dims["rows"] == inputs.rows == len(inputs.x.tolist())
    worst = max(abs(a - b) for out, exp in zip(outputs.y.tolist(), expected.y.tolist())
                for a, b in zip(sorted(out), sorted(exp)))
    print("checked %%.3g" %% worst, file=sys.stderr, flush=True)
    return %s
"""
REVERSED = _kjudge.RIGHT.replace(
    "y[c] /= sum;", "y[c] /= sum;\n    for (long c = 0; c < cols / 2; ++c) { float t = y[c]; "
    "y[c] = y[cols - 1 - c]; y[cols - 1 - c] = t; }")
WRONG = _kjudge.RIGHT.replace("y[c] /= sum", "y[c] = y[c] / sum + 0.01f")


class PythonChecks(_kjudge.Case):
    def challenge(self, returns="worst", text=None, others=(), **check):
        folder = self.small_challenge(rows=4, cols=6)
        path = os.path.join(folder, "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        challenge["limits"].update(capture_s=5)
        challenge["tensors"]["outputs"][0]["checks"] = [dict({"kind": "custom", "limit": 1e-5}, **check),
                                                        *others]
        with open(path, "w") as file:
            json.dump(challenge, file)
        self.write("challenge/check.py", text or CHECK % returns)
        return folder

    def judge(self, code, challenge, *more, status=0):
        out, err = self.run_kjudge("selftest", self.write("submission.py", code), "--challenge",
                                   challenge, "--json", *(more or ("--pairs", "1")), status=status)
        return json.loads(out), err

    def test_right_and_wrong(self):
        challenge = self.challenge()
        result, err = self.judge(REVERSED, challenge, "--pairs", "5")
        self.assertEqual(result["verdict"], "accepted", result["message"])
        shape = next(s for s in result["shapes"] if s["timed"])
        replays = 2 * 5 * shape["replays_per_arm"]  # of both arms in the pairs, and those before
        self.assertGreater(err.count("checked "), replays)
        result, _ = self.judge(WRONG, challenge, status=1)
        self.assertEqual(result["verdict"], "wrong_result", result["message"])
        self.assertIn("output y: check.py finds an error of 0.01", result["message"])
        self.assertIn(", at most 1e-05 is allowed; regime nominal", result["message"])
        failure = next(s["failure"] for s in result["shapes"] if s.get("failure"))
        self.assertEqual(failure["check"], "custom")
        self.assertAlmostEqual(failure["rows"]["worst"], 0.01, places=5)
        self.assertEqual(failure["rows"]["limit"], 1e-5)
        self.assert_nothing_left()

    def test_beside_others_all_must_hold(self):
        close = {"kind": "close", "rtol": 1e-5, "atol": 1e-7}
        challenge = self.challenge(others=[close])
        self.assertEqual(self.judge(_kjudge.RIGHT, challenge)[0]["verdict"], "accepted")
        result, _ = self.judge(REVERSED, challenge, status=1)
        self.assertIn("elements differ", result["message"])

    def test_words_and_nan(self):
        result, _ = self.judge(_kjudge.RIGHT, self.challenge("(1, 'not a set:\\nrow %d' % 3)", limit=2))
        self.assertEqual(result["verdict"], "accepted", result["message"])

    def wrong_message(self, returns):
        # The baseline is asked first where it fails, too; of it, nothing is said here.
        text = CHECK % ("(%s) if abs(sum(sum(outputs.y.tolist(), [])) - inputs.rows) > 1e-3 else 0" % returns)
        result, _ = self.judge(WRONG, self.challenge(text=text), status=1)
        self.assertEqual(result["verdict"], "wrong_result", result["message"])
        return result["message"]

    def test_words_of_a_wrong_one(self):
        self.assertIn("check.py finds an error of 7, at most 1e-05 is allowed; no ? set: row 3; regime",
                      self.wrong_message("7, 'no \\u00e9 set:\\nrow 3'"))

    def test_nan_is_above_every_limit(self):
        self.assertIn("finds an error of nan,", self.wrong_message("float('nan')"))

    def test_the_mean_of_an_evaluation(self):
        # 0 and 4 in turn for the wrong one: 2 in the mean.
        text = CHECK % ("(calls.append(1), 4 * (len(calls) % 2))[1] "
                        "if abs(sum(sum(outputs.y.tolist(), [])) - inputs.rows) > 1e-3 else 0")
        text = "calls = []\n" + text
        result, _ = self.judge(WRONG, self.challenge(text=text, limit=3, per="evaluation"), "--pairs", "5")
        self.assertEqual(result["verdict"], "accepted", result["message"])
        with open(self.path("challenge", "challenge.json")) as file:
            challenge = file.read()
        with open(self.path("challenge", "challenge.json"), "w") as file:
            file.write(challenge.replace('"limit": 3', '"limit": 1.5'))
        result, _ = self.judge(WRONG, self.path("challenge"), "--pairs", "5", status=1)
        self.assertEqual(result["verdict"], "wrong_result", result["message"])
        self.assertRegex(result["message"], r"finds an error of \S+, at most 1.5 is allowed; the mean of \d+ "
                         "replays")

    def test_failures_are_the_challenges(self):
        challenge = self.challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        for text, words in (
                (CHECK % "1 / 0", "raised ZeroDivisionError"),
                (CHECK % "None", "check() returned None; it returns how wrong the output is"),
                (CHECK % "True", "check() returned True; it returns how wrong the output is"),
                (CHECK % "(0, 'a', 'b')", "check() returned (0, 'a', 'b'); it returns how wrong the output is"),
                (CHECK % "['x' * 9999]", "xxx; it returns how wrong the output is, a number, or (number, words)"),
                (CHECK % "2", "baseline.py against reference.py"),
                ("import time\ndef check(*_): time.sleep(60)\n", "no answer within 5 s"),
                ("import os\ndef check(*_): os._exit(7)\n", "its process ended: exit status 7"),
                ("import driver\ndef check(s, r, o, i, outputs, e): driver.fill_bytes(outputs.y, 0)\n",
                 "raised DriverError: cuMemsetD8Async"),
                ("def chek(): pass\n", "it defines no check(shape, regime, output, inputs, outputs, expected)"),
                ("raise ImportError('no numpy')\n", "raised ImportError: no numpy")):
            with self.subTest(words=words):
                self.write("challenge/check.py", text)
                _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
                self.assertIn("baseline.py" if "baseline" in words else "check.py: ", error)
                self.assertIn(words, error)
        os.remove(self.path("challenge", "check.py"))
        _, error = self.run_kjudge("selftest", right, "--challenge", challenge, status=3)
        self.assertIn("check.py: no such file; it does the checks that are \"custom\"", error)
        self.assert_nothing_left()

    def test_a_python_reference_too(self):
        challenge = self.challenge()
        with open(os.path.join(challenge, "challenge.json")) as file:
            content = dict(json.load(file), reference="python")
        with open(os.path.join(challenge, "challenge.json"), "w") as file:
            json.dump(content, file)
        self.assertEqual(self.judge(REVERSED, challenge)[0]["verdict"], "accepted")

    def test_in_a_sandbox(self):
        if missing := self.sandbox_missing():
            self.skipTest(missing)
        self.write("from/ada.py", _kjudge.RIGHT)
        out, _ = self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge(),
                                 "--json")
        judged = json.loads(out)["judged"][0]
        self.assertEqual((judged["verdict"], judged["message"]), ("accepted", ""))


if __name__ == "__main__":
    _kjudge.main()
