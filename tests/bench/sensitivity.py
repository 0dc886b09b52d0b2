#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels made 1 % slower at 300 us and 3 % slower at 30 us: how often the interval of the speedup
excludes 1.

`loop` computes, `copy` moves memory (kernels/steps.cu); the slower one does that much more of the same
work, so what it really loses, to which the start of a kernel does not belong, is the mean speedup.

    sensitivity.py --evaluations 20 --json sensitivity.json
"""

import statistics

import _bench

TENSORS = {
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["n"],
                "generator": {"kind": "uniform", "low": -1, "high": 1}}],
    "outputs": [{"name": "y", "dtype": "float32", "shape": ["n"], "expected_dtype": "float32",
                 "checks": [{"kind": "exact"}]}]}
# name: elements, steps, thousandths. A step takes 4 cycles.
SHAPES = {"loop-300us": (132 * 512, 140_000, 10), "loop-30us": (132 * 512, 13_000, 30),
          "copy-300us": (34_668 * 4096, 0, 10), "copy-30us": (3_418 * 4096, 0, 30)}
if _bench.ON_HOST:
    SHAPES = {"loop-long": (4096, 1000, 10), "loop-short": (2048, 100, 30)}


def measure(arguments, record):
    with _bench.Workplace() as place:
        shapes = [{"name": name, "dtype": "float32", "dims": {"n": n},
                   "scalars": {"steps": steps, "permille": permille}}
                  for name, (n, steps, permille) in SHAPES.items()]
        challenge = place.challenge("steps", TENSORS, shapes)
        make = place.python_submission if _bench.ON_HOST else place.cuda_submission
        reference = place.capture(challenge, "reference", role="reference")
        baseline = place.capture(challenge, "baseline", make("plain", "steps", SLOWER=0))
        submission = place.capture(challenge, "slower", make("slower", "steps", SLOWER=1))
        for result in record.repeat(place, arguments.evaluations, challenge, submission, baseline,
                                    reference):
            record.add(_bench.facts_of(result))


def show(record):
    evaluations = record.evaluations
    print("%s, kjudge %s: %d evaluations" % (record.content.get("device"), record.content.get("kjudge"),
                                             len(evaluations)))
    rows = []
    for name in evaluations[0]["shapes"]:
        shapes = [e["shapes"][name] for e in evaluations]
        speedups = [s["speedup"] for s in shapes]
        below = sum(s["interval"][1] < 1 for s in shapes)
        above = sum(s["interval"][0] > 1 for s in shapes)
        rows.append([name, "%.1f" % (shapes[0]["baseline_ns"] / 1e3), "%.1f" % (SHAPES[name][2] / 10),
                     "%.2f" % (100 * (1 / statistics.mean(speedups) - 1)),
                     "%.2f" % (100 * _bench.deviation(speedups)),
                     "%.2f" % (100 * statistics.mean(s["interval"][1] - s["interval"][0] for s in shapes)),
                     "%d of %d" % (below, len(shapes)), "%d" % above])
    _bench.table(["all in %", "us", "more work", "slower", "sd", "width", "told apart", "the wrong way"], rows)


def main():
    arguments = _bench.options(__doc__, 20).parse_args()
    _bench.measure_and_show(arguments, "sensitivity", measure, show)


if __name__ == "__main__":
    _bench.run(main)
