#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kjudge beside the timing loops that others use (_peer_loops.py), on the same kernels in the same run:
the same code judged twice, how far apart it comes out.

A peer's ratio is that of two fresh processes, each timing every shape once. "Equal time" gives a peer
as many seconds for a shape and arm as kjudge's evaluation took for one after its processes had
started, all of it counted: inputs, reference, eviction, checks. Needs a GPU, torch and Triton.

    peers.py --evaluations 15 --json peers.json [--lengths 5 30 --kinds copy]
"""

import math
import multiprocessing
import statistics

import _bench
import _mixed


def work(there, loop, shapes, budget):
    import _peer_loops
    there.send(_peer_loops.measure(loop, shapes, budget))


def in_a_process(start, loop, shapes, budget, seconds):
    """What _peer_loops.measure() gives in a process of its own, which is killed after `seconds`. A forked
    one has torch already, and no context yet."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context(start).Process(target=work, args=(there, loop, shapes, budget))
    process.start()
    there.close()
    try:
        if not here.poll(None if math.isinf(seconds) else max(0.0, seconds)):
            process.kill()
            raise _bench.OutOfTime
        return here.recv()
    except EOFError:
        raise _bench.Failed("%s: its process ended without times" % loop) from None
    finally:
        process.join()


def measure(arguments, record):
    if arguments.start == "fork":
        try:
            import torch  # noqa: F401  once for all children
        except ImportError as error:
            raise _bench.Failed("its loops need a GPU, torch and Triton: %s" % error) from None
    kinds, lengths = arguments.kinds, arguments.lengths
    shapes = {s["name"]: (s["scalars"]["product"], s["dims"]["m"], s["dims"]["n"], s["dims"]["k"])
              for s in _mixed.shapes(kinds, lengths)}
    with _bench.Workplace() as place:
        challenge = place.challenge("mixed", _mixed.TENSORS, _mixed.shapes(kinds, lengths))
        reference = place.capture(challenge, "reference", role="reference")
        baseline = place.capture(challenge, "baseline", role="baseline")
        submission = place.capture(challenge, "submission", place.python_submission("same", "mixed"))
        for result in record.repeat(place, arguments.evaluations, challenge, submission, baseline,
                                    reference):
            facts = _bench.facts_of(result)
            seconds = sum(s for name, s in facts["phases"].items() if name != "start")
            budget = seconds / (2 * len(shapes))
            ratios = {name: {"kjudge": shape["speedup"]} for name, shape in facts["shapes"].items()}
            times = {name: shape["baseline_ns"] / 1e3 for name, shape in facts["shapes"].items()}
            for loop in arguments.peers:
                first, second = (in_a_process(arguments.start, loop, shapes, budget, record.left())
                                 for _ in range(2))
                for name in shapes:
                    for what, microseconds in first[name].items():
                        ratios[name][what] = microseconds / second[name][what]
            record.add({"budget_s": budget, "ratios": ratios, "baseline_us": times, "kjudge": facts})


def show(record):
    evaluations = record.evaluations
    print("%s, kjudge %s: %d evaluations, %.3f s for a shape and arm" % (
        record.content.get("device"), record.content.get("kjudge"), len(evaluations),
        statistics.mean(e["budget_s"] for e in evaluations)))
    names = list(evaluations[0]["ratios"])
    systems = list(evaluations[0]["ratios"][names[0]])
    logs = {name: {system: [math.log(e["ratios"][name][system]) for e in evaluations]
                   for system in systems} for name in names}
    length = {name: "%.1f" % statistics.median(e["baseline_us"][name] for e in evaluations)
              for name in names}
    print("sd of the ratio, %")
    _bench.table(["shape", "us", *systems],
                 [[name, length[name], *("%.2f" % (100 * _bench.deviation(logs[name][s])) for s in systems)]
                  for name in names])
    print("largest |ratio - 1|, %")
    _bench.table(["shape", "us", *systems],
                 [[name, length[name], *("%.2f" % (100 * max(abs(math.expm1(x)) for x in logs[name][s]))
                                         for s in systems)] for name in names])
    if len(evaluations) < 2:
        print("one evaluation has no spread")
    for name in names:
        spread = {system: _bench.deviation(logs[name][system]) for system in systems}
        better = [system for system in systems if spread[system] < spread["kjudge"]]
        if better:
            print("%s: less spread than kjudge: %s" % (name, ", ".join(better)))


def main():
    parser = _bench.options(__doc__, 15)
    parser.add_argument("--lengths", type=int, nargs="+", metavar="US", default=[5, 10, 30, 100, 300])
    parser.add_argument("--kinds", nargs="+", choices=("copy", "product"), default=("copy", "product"))
    parser.add_argument("--peers", nargs="+", choices=("do_bench", "mean", "repeats"),
                        default=("do_bench", "mean", "repeats"))
    parser.add_argument("--start", choices=("fork", "spawn"), default="fork", help="of a peer's process")
    arguments = parser.parse_args()
    _bench.measure_and_show(arguments, "peers", measure, show)


if __name__ == "__main__":
    _bench.run(main)
