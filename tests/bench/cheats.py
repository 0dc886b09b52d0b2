#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Submissions that would gain from what an earlier replay left in caches or in shared memory, against
the plain kernel (kernels/scale.cu): the ratio, and what the baseline takes beside them and beside an
honest one. Then one that is fast only on nominal inputs.

    cheats.py --evaluations 5 --json cheats.json
"""

import statistics
import sys

import _bench

TENSORS = {
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["n"],
                "generator": {"kind": "uniform", "low": -1, "high": 1}}],
    "outputs": [{"name": "y", "dtype": "float32", "shape": ["n"], "expected_dtype": "float32",
                 "checks": [{"kind": "exact"}]}]}
LARGE = [{"name": "nominal", "pairs_per_round": 4},
         {"name": "large", "pairs_per_round": 1,
          "generators": {"x": {"kind": "uniform", "low": 10, "high": 20}}}]
CHEATS = {"honest": 0, "evict_last loads": 1, "persisting window": 2, "prefetch of the next input": 3,
          "shared-memory hand-over": 4}
# name: elements, steps. Of `table` each multiprocessor gets one block.
SHAPES = {"2MB": (1 << 19, 0), "24MB": (6 << 20, 0), "48MB": (12 << 20, 0), "table": (132 * 1024, 5000)}
NOMINAL = {"table-30us": (132 * 1024, 13_000), "table-100us": (132 * 1024, 45_000)}
if _bench.ON_HOST:
    CHEATS = {"honest": 0}
    SHAPES = {"1MB": (1 << 18, 0), "table": (1 << 12, 5000)}
    NOMINAL = {"table-long": (1 << 12, 50_000)}


def shape_list(shapes):
    return [{"name": name, "dtype": "float32", "dims": {"n": n}, "scalars": {"steps": steps}}
            for name, (n, steps) in shapes.items()]


def nominal_only(place, make, record):
    nominal = place.challenge("scale", TENSORS, shape_list(NOMINAL), folder="challenge-nominal",
                              regimes=LARGE)
    nominal_reference = place.capture(nominal, "nominal-reference", role="reference")
    plain = place.capture(nominal, "nominal-plain", make("nominal-plain", "scale", CHEAT=0))
    cheat = place.capture(nominal, "nominal-cheat", make("nominal-cheat", "scale", CHEAT=5))
    result = place.replay(nominal, cheat, plain, nominal_reference)
    record.add(dict(_bench.facts_of(result), cheat="fast on nominal inputs only"))


def measure(arguments, record):
    with _bench.Workplace() as place:
        make = place.python_submission if _bench.ON_HOST else place.cuda_submission
        challenge = place.challenge("scale", TENSORS, shape_list(SHAPES))
        reference = place.capture(challenge, "reference", role="reference")
        baseline = place.capture(challenge, "baseline", make("plain", "scale", CHEAT=0))
        bundles = {}
        for name, number in CHEATS.items():
            try:
                bundles[name] = place.capture(challenge, "cheat%d" % number,
                                              make("cheat%d" % number, "scale", CHEAT=number))
            except _bench.Failed as failed:
                if name == "honest":
                    raise
                record.note(**{"not captured: " + name: str(failed).split("\n", maxsplit=1)[0]})
        nominal_only(place, make, record)  # first: where --seconds are few, it is there
        for turn in range(arguments.evaluations):
            for name, bundle in bundles.items():
                if record.late():
                    return
                result = place.replay(challenge, bundle, baseline, reference)
                record.note(device=result["device"], kjudge=result["kjudge_version"])
                record.add(dict(_bench.facts_of(result), cheat=name))
                print("%d of %d, %s: %.1f s" % (turn + 1, arguments.evaluations, name, result["wall_s"]),
                      file=sys.stderr, flush=True)


def show(record):
    print("%s, kjudge %s" % (record.content.get("device"), record.content.get("kjudge")))
    for key, message in record.content.items():
        if key.startswith("not captured: "):
            print(key[len("not captured: "):] + ": " + message)
    by_cheat = {}
    for evaluation in record.evaluations:
        by_cheat.setdefault(evaluation["cheat"], []).append(evaluation)
    rows = []
    for cheat, evaluations in by_cheat.items():
        for name in evaluations[0]["shapes"]:
            shapes = [e["shapes"][name] for e in evaluations]
            baseline = [s["baseline_ns"] for s in shapes]
            honest = [e["shapes"][name]["baseline_ns"] for e in by_cheat.get("honest", [])
                      if name in e["shapes"]]
            beside = ["-", "-"]
            if honest:
                middle = statistics.median(honest)
                beside = ["%+.2f" % (100 * (statistics.median(baseline) / middle - 1)),
                          "%.2f" % (100 * _bench.deviation(honest) / middle)]
            rows.append([cheat, name, "%.2f" % (statistics.median(baseline) / 1e3),
                         "%.4f" % statistics.median(s["speedup"] for s in shapes),
                         "[%.4f, %.4f]" % (statistics.median(s["interval"][0] for s in shapes),
                                           statistics.median(s["interval"][1] for s in shapes)),
                         "%d of %d" % (sum(s["interval"][0] <= 1 <= s["interval"][1] for s in shapes),
                                       len(shapes)),
                         "%d" % sum(s["interval"][0] > 1 for s in shapes), *beside])
    _bench.table(["submission", "shape", "us", "ratio", "interval", "contains 1", "faster",
                  "baseline beside it %", "sd % beside honest"], rows)
    print("medians over the evaluations; faster: intervals that lie above 1")
    for evaluation in by_cheat.get("fast on nominal inputs only", []):
        print("fast on nominal inputs only: score %.3f [%.3f, %.3f], %s" % (
            evaluation["speedup"], *evaluation["interval"],
            "below 1" if evaluation["interval"][1] < 1 else "NOT below 1"))


def main():
    arguments = _bench.options(__doc__, 5).parse_args()
    _bench.measure_and_show(arguments, "cheats", measure, show)


if __name__ == "__main__":
    _bench.run(main)
