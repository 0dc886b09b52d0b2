# SPDX-License-Identifier: Apache-2.0
"""How long kjudge rank takes, and how much memory, with many stored evaluations.

    rank_scale.py [--evaluations N] [--shapes N] [--runs N] [--folder DIR]

Makes a results directory of that many submissions with an evaluation each, then ranks it from scratch
and with its index, several times, and prints the best: other work disturbs. Where bench_publish_scale
was built, another evaluation and its pages are timed too. The directory goes away.
Results are hard links to a few thousand files, so that it is made in reasonable time and the caches of
the file system are warm. Processor seconds are printed too, as they depend less on other work.
"""

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("KJUDGE_BINARY", os.path.join(ROOT, "build-dev", "bin", "kjudge"))
GOLDEN = os.path.join(ROOT, "tests", "golden", "result-v1", "accepted.json")
KINDS = 64  # results that differ in more than their name


def results_of(shapes):
    """Texts of results, as kjudge writes them."""
    with open(GOLDEN) as file:
        golden = json.load(file)
    timed = golden["shapes"][0]
    with tempfile.TemporaryDirectory() as folder:
        texts = []
        for kind in range(KINDS):
            result = copy.deepcopy(golden)
            result.update(id="ID", started="2026-01-01T00:00:00Z", device="NVIDIA H200 GPU-1", arch="sm_90")
            result["shapes"] = []
            for number in range(shapes):
                shape = copy.deepcopy(timed)
                shape["name"] = "shape-%d" % number
                for round_ in shape["rounds"]:
                    for pair in round_["pairs"]:
                        for clocks in pair["submission"]:
                            clocks.update({k: v / (1 + 0.05 * kind + 0.01 * number) for k, v in clocks.items()})
                result["shapes"].append(shape)
            path = os.path.join(folder, "result.json")
            with open(path, "w") as file:
                json.dump(result, file)
            out = subprocess.run([BINARY, "show", path, "--json"], stdout=subprocess.PIPE, check=True)
            texts.append(out.stdout.decode())
        return texts


def make(folder, arguments):
    texts = results_of(arguments.shapes)
    shared = os.path.join(folder, "shared")
    os.mkdir(shared)
    files = []
    for number in range(min(4096, arguments.evaluations)):
        started = "2026-%02d-%02dT%02d:00:00Z" % (1 + number % 12, 1 + number % 28, number % 24)
        text = texts[(number * 2654435761 >> 7) % KINDS].replace('"ID"', '"evaluation-%d"' % number, 1)
        files.append(os.path.join(shared, str(number)))
        with open(files[-1], "w") as file:
            file.write(text.replace("2026-01-01T00:00:00Z", started, 1))
    for number in range(1, arguments.evaluations + 1):
        submission = os.path.join(folder, "submissions", str(number))
        os.makedirs(os.path.join(submission, "evaluations", "1"))
        identity = {"format": "kjudge-submission/1", "id": "submission-%d" % number, "challenge": "softmax",
                    "run": "run-%d" % (number % arguments.runs), "name": "a.py", "sha256": "%064x" % number,
                    "received": "2026-01-01T00:00:00Z"}
        with open(os.path.join(submission, "submission.json"), "w") as file:
            json.dump(identity, file)
        os.link(files[number % len(files)], os.path.join(submission, "evaluations", "1", "result.json"))
    return len(texts[0])


def rank(folder):
    """(seconds, processor seconds, MiB at most) of one run."""
    start = time.monotonic()
    process = subprocess.Popen([BINARY, "rank", folder, "--json"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status != 0:
        sys.exit("rank failed")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--folder", help="where to make it; a temporary one by default")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kjudge-bench-", dir=arguments.folder)
    try:
        size = make(folder, arguments)
        print("%d evaluations of %d shapes, %d bytes each; %d runs" % (
            arguments.evaluations, arguments.shapes, size, arguments.runs), flush=True)
        scratch, with_index = [], []
        index = os.path.join(folder, "scores.index")
        time.sleep(4)  # what was just written is looked at again, see lib/store/score_index.cc
        for _ in range(arguments.times):
            if os.path.exists(index):
                os.remove(index)
            scratch.append(rank(folder))
            with_index.extend(rank(folder) for _ in range(arguments.times))
        for name, times in (("from scratch", scratch), ("with index", with_index)):
            print("%-12s  %.2f s, %.2f s of processors, at most %.0f MiB" % (
                name, min(t[0] for t in times), min(t[1] for t in times), max(t[2] for t in times)))
        print("index         %.1f MiB" % (os.path.getsize(index) / 2**20), flush=True)
        publish = os.path.join(os.path.dirname(BINARY), "bench_publish_scale")
        if os.access(publish, os.X_OK):
            print("one evaluation more, with the pages that it changes:", flush=True)
            subprocess.run([publish, folder, os.path.join(folder, "pages")], check=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
