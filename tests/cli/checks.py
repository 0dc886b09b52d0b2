# SPDX-License-Identifier: Apache-2.0
"""Checks of a challenge, from its file to a verdict and what is said of it."""

import json
import shutil

import _kjudge


def scaled(by):
    """A submission whose every answer is `by` times the right one."""
    return _kjudge.RIGHT.replace("y[c] /= sum", "y[c] = y[c] / sum * %s" % by)


class Checks(_kjudge.Case):
    def challenge(self, **output):
        shutil.rmtree(self.path("challenge"), ignore_errors=True)
        tensor = {"dtype": "$dtype", "shape": ["rows", "cols"]}
        return self.small_challenge(tensors={
            "inputs": [dict(tensor, name="x")],
            "outputs": [dict(tensor, name="y", **output)]})

    def judge(self, challenge, code, status=1):
        return self.evaluate(self.write("submission.py", code), "--challenge", challenge, "--pairs", "1",
                             status=status)

    def failure_of_test(self, result):
        """Of the test, 3 rows of 5, which comes before the timed shape."""
        return next(shape["failure"] for shape in result["shapes"] if not shape["timed"])

    def test_defaults_of_the_dtype(self):
        challenge = self.challenge()
        result = self.judge(challenge, _kjudge.RIGHT, status=0)
        self.assertEqual(result["verdict"], "accepted", result["message"])
        result = self.judge(challenge, scaled("1.001f"))
        self.assertEqual(result["verdict"], "wrong_result", result["message"])
        self.assertIn("3 of 3 rows are wrong; worst row: relative L2 error 0.001, allowed 1e-05 where the "
                      "baseline has ", result["message"])
        failure = self.failure_of_test(result)
        self.assertEqual(failure["check"], "versus_baseline")
        self.assertEqual(failure["rows"]["rows"], 3)
        self.assertEqual(failure["rows"]["failed"], 3)
        self.assertLess(failure["rows"]["baseline"], 1e-6)
        self.assertEqual(failure["mismatched"], 15)
        # As the reference in TF32 would be.
        result = self.judge(self.challenge(tf32=True), scaled("1.0009f"), status=0)
        self.assertEqual(result["verdict"], "accepted", result["message"])

    def test_defaults_allow_the_error_of_a_long_sum(self):
        shapes = [{"arch": "x86_64", "dtype": "float32", "dims": {"rows": 1, "cols": 100003}}]
        self.challenge()
        with open(self.path("challenge", "challenge.json")) as file:
            challenge = dict(json.load(file), shapes=shapes, tests=[])
        with open(self.path("challenge", "challenge.json"), "w") as file:
            json.dump(challenge, file)
        result = self.judge(self.path("challenge"), _kjudge.RIGHT, status=0)
        self.assertEqual(result["verdict"], "accepted", result["message"])
        # 1e-5 * sqrt(100003 / 4096)
        self.assertIn("allowed 4.94113", self.judge(self.path("challenge"), scaled("1.0001f"))["message"])

    def test_all_of_several_must_hold(self):
        cosine = {"kind": "cosine", "min": 0.999999}
        result = self.judge(self.challenge(checks=[cosine]), scaled("2"), status=0)
        self.assertEqual(result["verdict"], "accepted", result["message"])  # blind to a factor
        challenge = self.challenge(checks=[cosine, {"kind": "rel_l2", "limit": 1e-5, "quantile": 0.9}])
        for code, check, words in (
                (scaled("2"), "rel_l2", "3 of 3 rows are wrong (0 may be); worst row: relative L2 error 1,"),
                (scaled("0"), "cosine", "cosine similarity 0, at least 0.999999 is needed"),
                (scaled("(row == 1 && c == 0 ? NAN : 1)"), "cosine", "; 1 is NaN or infinite on one side only")):
            with self.subTest(words=words):
                result = self.judge(challenge, code)
                self.assertEqual(result["verdict"], "wrong_result", result["message"])
                self.assertIn(words, result["message"])
                self.assertEqual(self.failure_of_test(result)["check"], check)
        self.assertEqual(self.failure_of_test(result)["first_position"], [1, 0])

    def test_one_element_too_far_off_for_its_row(self):
        challenge = self.challenge(checks=[{"kind": "row_bound", "rtol": 1e-5, "c": 1e-3}])
        for by, status in (("1.0001f", 0), ("1.05f", 1)):
            with self.subTest(by=by):
                result = self.judge(challenge, scaled("(c == 4 ? %s : 1)" % by), status=status)
        failure = self.failure_of_test(result)
        self.assertEqual(failure["check"], "row_bound")
        self.assertEqual(failure["first_position"][-1], 4)
        self.assertIn("(allowed 0.001*rms of the row + 1e-05*|expected|)", result["message"])

    def test_codes_of_a_type(self):
        challenge = self.challenge(checks=[{"kind": "codes", "same": 0, "within": 20}])
        for by, status in (("1.0000005f", 0), ("1.0001f", 1)):
            with self.subTest(by=by):
                result = self.judge(challenge, scaled(by), status=status)
        failure = self.failure_of_test(result)
        self.assertEqual(failure["codes"]["beyond"], 15)
        self.assertGreater(failure["codes"]["worst_steps"], 400)
        self.assertIn("15 are further off, up to ", result["message"])


if __name__ == "__main__":
    _kjudge.main()
