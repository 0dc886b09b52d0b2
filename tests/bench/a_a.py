#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The baseline against itself: how often the interval of a shape contains 1, and how wide it is.

    a_a.py [KJUDGE] [EVALUATIONS]     50 evaluations of 4 shapes are 200 trials
"""

import json
import os
import subprocess
import sys
import tempfile


def main(arguments):
    kjudge = arguments[0] if arguments else "build/bin/kjudge"
    evaluations = int(arguments[1]) if len(arguments) > 1 else 50
    trials = covered = widths = scores_covered = 0
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, "baseline.kjb")
        subprocess.run([kjudge, "capture", "--role", "baseline", "--challenge", "softmax", "-o", bundle],
                       stdout=subprocess.DEVNULL, check=True)
        for number in range(evaluations):
            done = subprocess.run([kjudge, "replay", "--submission", bundle, "--baseline", bundle,
                                   "--challenge", "softmax", "--json"],
                                  stdout=subprocess.PIPE, check=True)
            score = json.loads(done.stdout)["score"]
            for shape in score["shapes"]:
                low, high = shape["interval"]["low"], shape["interval"]["high"]
                trials += 1
                covered += low <= 1 <= high
                widths += high - low
            scores_covered += score["interval"]["low"] <= 1 <= score["interval"]["high"]
            print("%d of %d: %.1f %% of %d intervals contain 1, mean width %.4f" %
                  (number + 1, evaluations, 100 * covered / trials, trials, widths / trials),
                  flush=True)
    print("coverage %.1f %% (shapes), %.1f %% (scores); mean width %.4f" %
          (100 * covered / trials, 100 * scores_covered / evaluations, widths / trials))
    return 0 if covered >= 0.92 * trials else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
