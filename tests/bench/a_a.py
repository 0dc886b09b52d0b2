#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same kernels as baseline and as submission, judged again and again: how far from 1 the speedup
comes out, how often its interval contains 1, and where the variance is.

Two captures of the same code; then each evaluation is a `kjudge replay` on fresh hidden inputs, with
fresh workers each round and no Python.

    a_a.py --evaluations 50 --json a_a.json       12 shapes, so 600 trials
    a_a.py --merge a_a.json more.json             the table of several runs
"""

import math
import statistics

import _bench
import _mixed


def measure(arguments, record):
    with _bench.Workplace() as place:
        lengths = arguments.lengths
        challenge = place.challenge("mixed", _mixed.TENSORS, _mixed.shapes(arguments.kinds, lengths))
        reference = place.capture(challenge, "reference", role="reference")
        baseline = place.capture(challenge, "baseline", role="baseline")
        submission = place.capture(challenge, "submission", place.python_submission("same", "mixed"))
        for result in record.repeat(place, arguments.evaluations, challenge, submission, baseline,
                                    reference):
            record.add(_bench.facts_of(result))


def show(record):
    evaluations = record.evaluations
    print("%s, kjudge %s: %d evaluations, %.1f s each" % (
        record.content.get("device"), record.content.get("kjudge"), len(evaluations),
        statistics.mean(e["wall_s"] for e in evaluations)))
    rows = []
    all_covered = []
    for name in evaluations[0]["shapes"]:
        shapes = [e["shapes"][name] for e in evaluations if name in e["shapes"]]
        errors = [abs(s["speedup"] - 1) for s in shapes]
        covered = [s["interval"][0] <= 1 <= s["interval"][1] for s in shapes]
        all_covered += covered
        logs = [[[math.log(pair[0] / pair[1]) for pair in r] for r in s["rounds"]] for s in shapes]
        within, between, beyond = _bench.variances(logs)
        mean = statistics.mean(math.log(s["speedup"]) for s in shapes)
        of_rounds = [statistics.mean(r) for e in logs for r in e]
        rows.append([name, "%.1f" % (statistics.median(s["baseline_ns"] for s in shapes) / 1e3),
                     "%d" % shapes[0]["replays_per_arm"],
                     "%.0f" % (100 * _bench.share(errors, lambda x: x <= 0.005)),
                     "%.0f" % (100 * _bench.share(errors, lambda x: x <= 0.01)),
                     "%.0f" % (100 * _bench.share(errors, lambda x: x <= 0.04)),
                     "%.2f" % (100 * _bench.quantile(errors, 0.95)),
                     "%.0f" % (100 * _bench.share(covered, bool)),
                     "%.2f" % (100 * statistics.mean(s["interval"][1] - s["interval"][0] for s in shapes)),
                     "%.2f" % (100 * within), "%.2f" % (100 * between), "%.2f" % (100 * beyond),
                     "%+.2f" % (100 * mean),
                     "%.2f" % (100 * _bench.deviation(of_rounds) / math.sqrt(len(of_rounds))), "%d" % sum(s["voids"] for s in shapes)])
    _bench.table(["all in %", "us", "m", "<=0.5", "<=1", "<=4", "q95", "contains 1", "width", "within",
                  "rounds", "evals", "mean", "se", "voids"], rows)
    scores = [e["interval"][0] <= 1 <= e["interval"][1] for e in evaluations]
    print("intervals that contain 1: %.1f %% of %d shapes, %.1f %% of %d scores" % (
        100 * _bench.share(all_covered, bool), len(all_covered), 100 * _bench.share(scores, bool),
        len(scores)))
    print("us: median; m: replays per arm and pair; <=: share of |speedup - 1|, q95 its 95 % quantile;\n"
          "within, rounds, evals: sd of a pair's ratio within a round, of rounds and of evaluations beyond "
          "it;\nmean: of the log speedup; se: its standard error, by rounds")
    show_limits(evaluations)


def show_limits(evaluations):
    """What a pair's ratio owes to what, and what pairs take away. One tick of the clock at each end of a
    replay, uniform, in both arms; who was first; where memory lies and what else differs between fresh
    workers. The rest, of caches, DRAM and its refresh, is not told apart by times."""
    rows = []
    for name in evaluations[0]["shapes"]:
        shapes = [e["shapes"][name] for e in evaluations if name in e["shapes"]]
        rounds = [[(math.log(pair[0]), math.log(pair[1]), pair[2]) for pair in r]
                  for s in shapes for r in s["rounds"]]
        ratios = [[a - b for a, b, _ in r] for r in rounds]
        within = math.sqrt(statistics.mean(statistics.variance(r) for r in ratios))
        nanoseconds = statistics.median(s["baseline_ns"] for s in shapes)
        # A difference of two stamps has the variance tick^2 / 6; the median of m of them at most that.
        tick = math.sqrt(2 * shapes[0]["tick_ns"] ** 2 / 6) / nanoseconds
        first = {who: [a - b for r in rounds for a, b, w in r if w == who]
                 for who in ("baseline", "submission")}
        # The baseline's time by the submission's: less where the submission was second.
        order = (statistics.mean(first["submission"]) - statistics.mean(first["baseline"])) / 2
        pairs = len(first["baseline"]) + len(first["submission"])
        shared = statistics.mean(statistics.covariance(*zip(*((a, b) for a, b, _ in r))) for r in rounds)
        clocks = [[c for c in s["clock_mhz"] if c] for s in shapes]
        clock = [_bench.deviation(c) / statistics.mean(c) for c in clocks if len(c) > 1]
        _, between, _ = _bench.variances([[[math.log(p[0] / p[1]) for p in r] for r in s["rounds"]]
                                          for s in shapes])
        rows.append([name, "%.1f" % (nanoseconds / 1e3), *("%.2f" % (100 * x) for x in (
            within, min(tick, within))), "%+.2f" % (100 * order), "%.2f" % (100 * within / math.sqrt(pairs)),
            *("%.2f" % (100 * x) for x in (between, math.sqrt(max(0, shared)))),
            "%.2f" % (100 * statistics.mean(clock)) if clock else "-"])  # the host driver tells none
    _bench.table(["all in %", "us", "within", "tick", "order", "se", "rounds", "both arms", "clock"], rows)
    print("tick: sd of a ratio for the clock's tick alone, at most; order: what being second costs, se: its\n"
          "standard error; both arms: sd of what both arms of a pair share within a round, which their ratio\n"
          "has not; clock: sd of the multiprocessors' clock from round to round, which both arms share too")


def main():
    parser = _bench.options(__doc__, 50)
    parser.add_argument("--lengths", type=int, nargs="+", metavar="US", help="only these; default all")
    parser.add_argument("--kinds", nargs="+", choices=("copy", "product"), default=("copy", "product"))
    arguments = parser.parse_args()
    _bench.measure_and_show(arguments, "a_a", measure, show)


if __name__ == "__main__":
    _bench.run(main)
