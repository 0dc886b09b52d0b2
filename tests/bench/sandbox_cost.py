#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sandbox costs: an empty build.sh, and a capture of the softmax baseline, with and without;
best of 5.

    sandbox_cost.py [KJUDGE]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import _bench

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def best(kjudge, submission, bundle, *arguments):
    """Milliseconds of the whole command and of build.sh."""
    whole, build = [], []
    for _ in range(5):
        start = time.monotonic()
        done = subprocess.run([kjudge, "capture", submission, "--challenge", "softmax", "-o", bundle, "--json",
                               *arguments], stdout=subprocess.PIPE, check=True)
        whole.append(time.monotonic() - start)
        build.append(json.loads(done.stdout)["seconds"]["build"])
    return min(whole) * 1e3, min(build) * 1e3


def main(arguments):
    kjudge = os.path.abspath(arguments[0]) if arguments else _bench.BINARY
    with tempfile.TemporaryDirectory() as folder:
        submission, bundle = os.path.join(folder, "submission"), os.path.join(folder, "made.kjb")
        shutil.copytree(os.path.join(ROOT, "examples", "softmax", "baseline"), submission)
        with open(os.path.join(submission, "build.sh"), "w") as file:
            file.write("exit 0\n")
        for name, options in (("plain", ()), ("sandbox", ("--sandbox",))):
            whole, build = best(kjudge, submission, bundle, *options)
            print("%-8s build.sh %6.1f ms, capture command %6.0f ms" % (name, build, whole))


if __name__ == "__main__":
    main(sys.argv[1:])
