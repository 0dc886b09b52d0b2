# SPDX-License-Identifier: Apache-2.0
"""The hidden inputs of a stored evaluation can be made again by who has its secret, and by no one
else."""

import json
import os
import stat

import _kjudge

# Tells the first value of the hidden input of every replay.
REFERENCE = """
import math, sys

def kernel_fn(state, inputs, outputs):
    rows = inputs.x.tolist()
    print("drew %r" % rows[0][0], file=sys.stderr, flush=True)
    outputs.y.copy_from([[math.exp(v - max(row)) / sum(math.exp(w - max(row)) for w in row)
                          for v in row] for row in rows])
"""


def drawn(text):
    return [line for line in text.splitlines() if line.startswith("drew ")]


class ReplayAgain(_kjudge.Case):
    def test_the_same_inputs_in_the_same_order(self):
        challenge = self.small_challenge(rows=8, cols=6, reference="python")
        with open(os.path.join(challenge, "reference.py"), "w") as file:
            file.write(REFERENCE)
        self.write("from/ada.py", _kjudge.RIGHT)
        _, first = self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge,
                                   "--unsafe")
        evaluation = self.path("results/submissions/1/evaluations/1")
        with open(os.path.join(evaluation, "result.json")) as file:
            result = json.load(file)
        self.assertEqual(result["verdict"], "accepted", result["message"])
        secret = os.path.join(evaluation, "secret.json")
        self.assertEqual(stat.S_IMODE(os.stat(secret).st_mode), 0o600)

        arguments = ("replay", "--challenge", challenge, "--json")
        out, again = self.run_kjudge(*arguments, "--again", evaluation)
        other = drawn(again)
        self.assertGreater(len(other), 30)
        # How many replays a pair takes follows from times, and whether it is void.
        self.assertGreater(len(set(other) & set(drawn(first))), 30)
        self.assertEqual(len(set(other)), len(other))
        repeated = json.loads(out)
        self.assertEqual(repeated["id"], result["id"])
        self.assertEqual([pair["first"] for round_ in repeated["shapes"][0]["rounds"]
                          for pair in round_["pairs"]],
                         [pair["first"] for round_ in result["shapes"][0]["rounds"]
                          for pair in round_["pairs"]])

        _, fresh = self.run_kjudge(*arguments, "--submission", os.path.join(evaluation, "bundle.kjb"))
        self.assertFalse(set(drawn(fresh)) & set(other))

        os.remove(secret)
        _, error = self.run_kjudge(*arguments, "--again", evaluation, status=2)
        self.assertIn("secret.json: no such file", error)
        _, error = self.run_kjudge(*arguments, status=2)
        self.assertIn("--again", error)

    def test_a_pair_has_its_inputs_however_many_replays_others_have(self):
        """A slow baseline has pairs of one replay, the quick one of several."""
        regimes = [{"name": "nominal", "pairs_per_round": 3},
                   {"name": "large", "pairs_per_round": 2,
                    "generators": {"x": {"kind": "uniform", "low": 10, "high": 20}}}]
        challenge = self.small_challenge(rows=8, cols=6, reference="python", regimes=regimes, tests=[])
        with open(os.path.join(challenge, "reference.py"), "w") as file:
            file.write(REFERENCE)
        self.write("from/ada.py", _kjudge.RIGHT)
        _, quick = self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge,
                                   "--unsafe")
        slow = _kjudge.RIGHT.replace("float maximum", "for (volatile long i = 0; i < 500000; ++i) {}\n"
                                     "    float maximum")
        self.run_kjudge("capture", self.write("slow.py", slow), "--challenge", challenge, "-o", "slow.kjb")
        out, again = self.run_kjudge("replay", "--challenge", challenge, "--baseline", "slow.kjb", "--json",
                                     "--again", self.path("results/submissions/1/evaluations/1"))
        self.assertEqual(json.loads(out)["shapes"][0]["replays_per_arm"], 1)
        quick, again = set(drawn(quick)), set(drawn(again))
        self.assertGreater(len(quick), len(again))
        # 30 pairs and each regime before them. Of a pair that is void in one of the two runs, and was so
        # before it drew anything, the inputs differ; a busy machine has a few of these.
        self.assertGreaterEqual(len(quick & again), 25)


if __name__ == "__main__":
    _kjudge.main()
