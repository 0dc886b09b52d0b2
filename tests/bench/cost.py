#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation costs after its capture: the sums of two fp16 matrices of five sizes, baseline and
submission, all outputs checked.

Device time is what the steps take that wait for the device: fill, reference, restore, evict, both
kernels, copy, check and calibrate, as the supervisor and the workers time them; the rest is the start
of processes and the judge's own work.

    cost.py --evaluations 5 --json cost.json [--checks default]
"""

import statistics

import _bench

SIZES = (64, 128) if _bench.ON_HOST else (1024, 2048, 4096, 8192, 16384)
DEVICE = ("fill", "reference", "restore", "evict", "kernel (baseline)", "kernel (submission)", "copy", "check",
          "calibrate")
CHECKS = {"close": {"checks": [{"kind": "close", "rtol": 1e-3, "atol": 1e-3}]}, "default": {}}


def tensors(checks):
    matrix = {"dtype": "float16", "shape": ["n", "n"]}
    return {"inputs": [dict(matrix, name=name, generator={"kind": "normal", "mean": 0, "deviation": 1})
                       for name in ("a", "b")],
            "outputs": [dict(matrix, name="c", expected_dtype="float32", **CHECKS[checks])]}


def measure(arguments, record):
    with _bench.Workplace() as place:
        shapes = [{"name": "%dx%d" % (n, n), "dtype": "float16", "dims": {"n": n}} for n in SIZES]
        challenge = place.challenge("add", tensors(arguments.checks), shapes)
        reference = place.capture(challenge, "reference", role="reference")
        baseline = place.capture(challenge, "baseline", role="baseline")
        submission = place.capture(challenge, "submission", place.python_submission("same", "add"))
        record.note(checks=arguments.checks)
        for result in record.repeat(place, arguments.evaluations, challenge, submission, baseline,
                                    reference):
            record.add(_bench.facts_of(result))


def show(record):
    evaluations = record.evaluations
    wall = statistics.median(e["wall_s"] for e in evaluations)
    phases = {name: statistics.median(e["phases"][name] for e in evaluations)
              for name in evaluations[0]["phases"]}
    device = sum(phases[name] for name in DEVICE)
    print("%s, kjudge %s, checks: %s; medians of %d evaluations" % (
        record.content.get("device"), record.content.get("kjudge"), record.content.get("checks"),
        len(evaluations)))
    _bench.table(["step", "s", "%"], [[name, "%.3f" % seconds, "%.1f" % (100 * seconds / wall)]
                                      for name, seconds in phases.items()])
    rows = []
    for name in evaluations[0]["shapes"]:
        shapes = [e["shapes"][name] for e in evaluations]
        rows.append([name, "%.1f" % (statistics.median(s["baseline_ns"] for s in shapes) / 1e3),
                     "%d" % shapes[0]["replays_per_arm"],
                     "%.4f" % statistics.median(s["speedup"] for s in shapes)])
    _bench.table(["shape", "us", "m", "speedup"], rows)
    outside = wall - sum(phases.values())
    print("wall %.2f s (slowest %.2f), %.2f s of it outside the steps; device %.2f s" % (
        wall, max(e["wall_s"] for e in evaluations), outside, device))
    print("wall / device %.2f; without the start of processes %.2f" % (
        wall / device, (wall - outside - phases["start"]) / device))


def main():
    parser = _bench.options(__doc__, 5)
    parser.add_argument("--checks", choices=sorted(CHECKS), default="close",
                        help="rtol and atol of 1e-3, or what fp16 has where a challenge names none")
    arguments = parser.parse_args()
    _bench.measure_and_show(arguments, "cost", measure, show)


if __name__ == "__main__":
    _bench.run(main)
