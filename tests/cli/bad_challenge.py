# SPDX-License-Identifier: Apache-2.0
"""A mistake of a challenge's author is told as that, with file and field."""

import os
import shutil

import _kjudge


class BadChallenge(_kjudge.Case):
    def fails(self, challenge, *parts):
        right = self.write("right.py", _kjudge.RIGHT)
        out, err = self.run_kjudge("selftest", right, "--challenge", challenge, "--pairs", "1", status=3)
        self.assertEqual(out, "")
        self.assertTrue(err.startswith("kjudge: package: "), err)
        for part in parts:
            self.assertIn(part, err)
        self.assert_nothing_left()

    def test_unknown_field(self):
        self.fails(self.small_challenge(colour="red"), "challenge.json", "colour")

    def test_titles_and_authors_that_hide_or_turn_text(self):
        for text in ("Softmax\u202excod", "Soft\u200bmax", "\u009b2J", "a\u2028b", "\U000e0041"):
            for field in ("title", "author", "bounty"):
                self.fails(self.small_challenge(**{field: text}), "challenge.json: %s: expected one line of visible "
                           "text" % field, ", found ", "\\u")
                shutil.rmtree(self.path("challenge"))

    def test_memory_that_holds_no_tensors(self):
        self.fails(self.small_challenge(limits={"memory_bytes": 1 << 20}),
                   "challenge.json: limits.memory_bytes: 1048576 is less than", "bytes; give that")

    def test_missing_file(self):
        challenge = self.small_challenge()
        os.remove(os.path.join(challenge, "reference.py"))
        self.fails(challenge, "reference.py")

    def test_baseline_that_raises(self):
        challenge = self.small_challenge()
        with open(os.path.join(challenge, "baseline.py"), "w") as file:
            file.write("def kernel_fn(state, inputs, outputs):\n    raise RuntimeError('oops')\n")
        self.fails(challenge, "baseline.py", "oops", "line 2")

    def test_reference_of_a_wrong_type(self):
        challenge = self.small_challenge()
        with open(os.path.join(challenge, "reference.py"), "w") as file:
            file.write("import driver\n\ndef kernel_fn(state, inputs, outputs):\n"
                       "    return driver.empty(inputs.x.shape, 'float32')\n")
        self.fails(challenge, "reference.py", "float32", "float64")

    def test_reference_that_writes_nothing(self):
        challenge = self.small_challenge()
        path = os.path.join(challenge, "reference.py")
        with open(path) as file:
            source = file.read()
        self.assertIn("    softmax.launch(", source)
        with open(path, "w") as file:
            file.write(source.replace("    softmax.launch(", "    return\n    softmax.launch("))
        self.fails(challenge, "baseline.py against reference.py", "output y")

    def test_baseline_that_is_wrong(self):
        challenge = self.small_challenge()
        with open(os.path.join(challenge, "softmax.c")) as file:
            source = file.read()
        self.assertIn("1.f / row_exponentials", source)
        with open(os.path.join(challenge, "softmax.c"), "w") as file:
            file.write(source.replace("1.f / row_exponentials", "2.f / row_exponentials"))
        self.fails(challenge, "baseline.py", "output y", "3072 of 3072 elements differ")


if __name__ == "__main__":
    _kjudge.main()
