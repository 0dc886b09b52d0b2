#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a graph of many nodes costs on the host driver: its capture, dump, and rebuild with one pair of
replays, as a user would ask for them.

    large_graph.py [KJUDGE [NODES [chain|streams|star]]]     default: 100000 nodes, every way
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import _bench

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import _large_graph  # noqa: E402


def timed(what, command, **options):
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, **options)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("  %-8s %7.2f s, %7.2f s of processor" % (what, seconds, cpu), flush=True)
    return seconds, done.stdout


def measure(kjudge, folder, nodes, way):
    os.mkdir(folder)
    challenge, submission = _large_graph.write(folder, nodes, [way])
    environment = dict(os.environ, KJUDGE_DRIVER="host", XDG_CACHE_HOME=os.path.join(folder, "cache"))
    bundle = os.path.join(folder, "s.kjb")
    where = ["--challenge", challenge, "--json"]

    def run(what, *arguments):
        return timed(what, [kjudge, *arguments], env=environment)

    # Baseline and reference, of one node, go to the cache.
    small = os.path.join(challenge, "submission.py")
    subprocess.run([kjudge, "selftest", small, "--pairs", "1", *where], stdout=subprocess.DEVNULL,
                   env=environment, check=True)
    print("%s, %d nodes" % (way, nodes))
    capture, out = run("capture", "capture", submission, "-o", bundle, *where)
    for name, seconds in json.loads(out)["seconds"].items():
        print("    %-8s %5.2f s" % (name, seconds))
    dump, text = run("dump", "dump", bundle)
    dump_json, out = run("dump -j", "dump", bundle, "--json")
    assert len(json.loads(out)["shapes"][0]["nodes"]) == nodes
    replay, out = run("replay", "replay", "--submission", bundle, "--pairs", "1", *where)
    for phase in json.loads(out)["phases"]:
        if phase["seconds"] >= 0.01:
            print("    %-20s %5.2f s" % (phase["name"], phase["seconds"]))
    print("  %-8s %7.2f s = capture + dump + replay; %d bytes in the file, %d of dump" %
          ("sum", capture + dump + replay, os.path.getsize(bundle), len(text)))


def main(arguments):
    kjudge = os.path.abspath(arguments[0]) if arguments else _bench.BINARY
    nodes = int(arguments[1]) if len(arguments) > 1 else 100_000
    ways = arguments[2:] or _large_graph.WAYS
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            measure(kjudge, os.path.join(folder, way), nodes, way)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print("peak memory of a process: %d MiB" % peak)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
