#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation of softmax costs: wall time, the share of each step, and the ratio of the wall to
the sum of kernel, reference, fill, restore, evict and check times.

    softmax_cost.py [KJUDGE] [--limit]     --limit: exit 1 above 1.5 or 20 s
"""

import json
import subprocess
import sys
import time

import _bench

NEEDED = ("kernel (baseline)", "kernel (submission)", "reference", "fill", "restore", "evict", "check")


def main(arguments):
    limit = "--limit" in arguments
    arguments = [a for a in arguments if a != "--limit"]
    kjudge = arguments[0] if arguments else _bench.BINARY
    command = [kjudge, "selftest", "examples/softmax/baseline", "--challenge", "softmax", "--json"]
    # The first run captures baseline and reference into the cache.
    subprocess.run(command + ["--pairs", "1"], stdout=subprocess.DEVNULL, check=True)
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    whole = time.monotonic() - start
    result = json.loads(done.stdout)
    phases = {phase["name"]: phase["seconds"] for phase in result["phases"]}
    before = sum(phases.get(name, 0) for name in ("build", "import", "prepare", "capture", "export"))
    wall = whole - before
    for name, seconds in phases.items():
        print("%-12s %7.3f s  %5.1f %%" % (name, seconds, 100 * seconds / wall))
    needed = sum(phases[name] for name in NEEDED)
    print("%-12s %7.3f s" % ("wall", wall))
    print("%-12s %7.3f s  (with the capture)" % ("command", whole))
    print("ratio %.2f = wall / (%s)" % (wall / needed, " + ".join(NEEDED)))
    return 1 if limit and (wall / needed > 1.5 or wall > 20) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
