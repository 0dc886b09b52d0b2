#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes stats_reference.json: statistics of samples by exact arithmetic (fractions, 60 digits)."""
import json
import random
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path
import math
import statistics

getcontext().prec = 60
QUANTILES = [0.0, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0]


def quantile(samples, share):
    """Type 7 of Hyndman and Fan, exactly."""
    ordered = sorted(Fraction(x) for x in samples)
    place = Fraction(share) * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def geometric_mean(samples):
    log = sum(Decimal(x).ln() for x in samples) / len(samples)
    return log.exp()


def case(name, samples):
    return {
        "name": name,
        "samples": samples,
        "median": float(statistics.median([Fraction(x) for x in samples])),
        "geometric_mean": float(geometric_mean(samples)),
        "quantiles": [[q, float(quantile(samples, q))] for q in QUANTILES],
    }


def main():
    draw = random.Random(20250131)
    cases = [
        case("one sample", [1.2345678901234567]),
        case("two samples", [1.0, 2.0]),
        case("even count", [3.0, 1.0, 4.0, 1.5]),
        case("odd count", [5.0, 1.0, 4.0, 1.5, 9.25]),
        case("all equal", [0.1] * 7),
        case("tiny", [5e-324, 1e-310, 2.5e-308]),
        case("huge", [1e308, 1.5e308, 1.75e308, 9e307]),
        case("wide", [1e-300, 1e300, 1e-200, 1e200, 3.0]),
        case("reciprocals", [0.25, 4.0, 0.125, 8.0, 3.0, 1 / 3]),
    ]
    for n in (6, 30, 100, 1000):
        cases.append(case(f"ratios {n}", [round(draw.lognormvariate(0.2, 0.3), 9) for _ in range(n)]))
    text = json.dumps({"format": "kjudge-stats-reference/1", "cases": cases}, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
