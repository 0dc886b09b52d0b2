# SPDX-License-Identifier: Apache-2.0
"""A kernel that is right everywhere, faster than the baseline on nominal inputs and far slower on
others scores below 1: pairs of each regime are fixed in number, and every regime counts the same."""

import statistics

import _kjudge

# The work of a softmax so many times over; what the inputs look like decides how often.
REPEATED = _kjudge.RIGHT.replace("(long, cols)) {", "(long, cols)) {\n  for (long turn = 0; turn < %s; ++turn)", 1)
REPEATED = REPEATED.replace("float maximum = x[0];", 'float maximum = x[0];\n    __asm__ volatile("" ::: "memory");', 1)


class Regimes(_kjudge.Case):
    def test_fast_on_nominal_inputs_only_is_no_gain(self):
        self.small_challenge(rows=256, cols=256)
        self.write("challenge/baseline.py", REPEATED % "3")
        self.write("submission.py", REPEATED % "(in[0] < 50 ? 2 : 40)")
        result = self.evaluate("submission.py", "--challenge", "challenge", "--pairs", "10")
        ratios = {}
        for facts in result["shapes"][0]["rounds"]:
            of_round = [pair["regime"] for pair in facts["pairs"]]
            self.assertEqual((of_round.count("nominal"), of_round.count("large")), (3, 2))
            for pair in facts["pairs"]:
                times = [statistics.median(replay["event_ns"] for replay in pair[arm])
                         for arm in ("baseline", "submission")]
                ratios.setdefault(pair["regime"], []).append(times[0] / times[1])
        both = statistics.geometric_mean(statistics.median(of) for of in ratios.values())
        self.assertAlmostEqual(result["score"]["speedup"], both, delta=1e-6 * both)
        self.assertLess(result["score"]["speedup"], 1, ratios)


if __name__ == "__main__":
    _kjudge.main()
