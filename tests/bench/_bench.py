# SPDX-License-Identifier: Apache-2.0
"""What the benches share: challenges of their own, captures, evaluations that replay the recordings
again on fresh hidden inputs, and statistics of many evaluations.

They take the program that KJUDGE_BINARY names, else build-dev/bin/kjudge, and the driver that
KJUDGE_DRIVER names, else NVIDIA's where there is one. A GPU needs nvcc and a python3 with torch.
"""

import argparse
import gzip
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.path.abspath(os.environ.get("KJUDGE_BINARY", os.path.join(ROOT, "build-dev", "bin", "kjudge")))
KERNELS = os.path.join(HERE, "kernels")
ON_HOST = os.environ.get("KJUDGE_DRIVER") == "host" or not (
    os.environ.get("KJUDGE_DRIVER") == "cuda" or os.path.exists("/dev/nvidiactl"))
ARCH = "x86_64" if ON_HOST else "sm_*"


class Failed(Exception):
    """A program that a bench needs did not do what it should."""


class OutOfTime(Exception):
    """--seconds are over in the middle of an evaluation, which is dropped."""


def options(doc, evaluations):
    """A parser with what every bench has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=evaluations, metavar="N",
                        help="of everything that is repeated; default %d" % evaluations)
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="S",
                        help="begin no evaluation that may end later, by the longest before it")
    parser.add_argument("--json", metavar="FILE", help="write what was measured, after each evaluation")
    parser.add_argument("--merge", nargs="+", metavar="FILE",
                        help="measure nothing: the table of what runs of this bench wrote with --json")
    return parser


def opened(path, mode):
    return (gzip.open if path.endswith(".gz") else open)(path, mode)


class Record:
    """Evaluations as a JSON file holds them, or one that is called .gz; written whole after each."""

    def __init__(self, arguments, bench):
        self.path, self.start, self.seconds = arguments.json, time.monotonic(), arguments.seconds
        self.begun, self.longest = None, 0.0
        self.content = {"bench": bench, "node": platform.node(), "evaluations": []}
        for path in arguments.merge or []:
            with opened(path, "rt") as file:
                content = json.load(file)
            if content["bench"] != bench:
                raise Failed("%s: of %s, not of %s" % (path, content["bench"], bench))
            evaluations = self.content["evaluations"] + content["evaluations"]
            self.content = dict(content, evaluations=evaluations)

    @property
    def evaluations(self):
        return self.content["evaluations"]

    def left(self):
        """Seconds until --seconds are over."""
        return self.start + self.seconds - time.monotonic()

    def late(self):
        """Asked before each evaluation: whether it may end too late, by the longest that was begun so."""
        now = time.monotonic()
        if self.begun is not None:
            self.longest = max(self.longest, now - self.begun)
        self.begun = now
        return self.left() < self.longest

    def add(self, evaluation):
        self.evaluations.append(evaluation)
        self.save()

    def repeat(self, place, evaluations, *bundles):
        """Results of `evaluations` replays of (challenge, submission, baseline, reference), until it is
        late."""
        for number in range(evaluations):
            if self.late():
                return
            result = place.replay(*bundles)
            self.note(device=result["device"], kjudge=result["kjudge_version"])
            yield result
            print("%d of %d: %.1f s" % (number + 1, evaluations, result["wall_s"]), file=sys.stderr,
                  flush=True)

    def note(self, **facts):
        self.content.update(facts)
        self.save()

    def save(self):
        if not self.path:
            return
        made = os.path.join(os.path.dirname(self.path), ".tmp-" + os.path.basename(self.path))
        with opened(made, "wt") as file:
            json.dump(self.content, file)
        os.replace(made, self.path)


class Workplace:
    """A temporary folder with challenges, bundles and a cache of its own."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="kjudge-bench-")
        self.environment = dict(os.environ, KJUDGE_DRIVER="host" if ON_HOST else "cuda",
                                XDG_CACHE_HOME=self.path("cache"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def challenge(self, name, tensors, shapes, folder="challenge", **fields):
        """A challenge folder whose reference is kernels/NAME_reference.py, and whose baseline is what
        kernels/NAME.py launches: both beside all of kernels/."""
        folder = self.path(folder)
        shutil.copytree(KERNELS, folder, ignore=shutil.ignore_patterns("__pycache__"))
        content = {"format": "kjudge-challenge/1", "name": "bench-" + name, "version": 1,
                   "title": "Bench " + name, "author": "kjudge",
                   "limits": {"replay_s": 10, "capture_s": 300, "prepare_s": 300, "bundle_bytes": 1 << 35},
                   "tensors": tensors, "shapes": [dict(arch=ARCH, **shape) for shape in shapes], **fields}
        with open(os.path.join(folder, "challenge.json"), "w") as file:
            json.dump(content, file, indent=1)
        for made in ("baseline.py", "submission.py"):
            shutil.copy(os.path.join(KERNELS, name + ".py"), os.path.join(folder, made))
        shutil.copy(os.path.join(KERNELS, name + "_reference.py"), os.path.join(folder, "reference.py"))
        with open(os.path.join(folder, "TASK.md"), "w") as file:
            file.write("# A bench\n")
        return folder

    def cuda_submission(self, name, source, **defines):
        """A folder with kernels/SOURCE.cu as submission.cu, built with -Dname=value."""
        with open(os.path.join(KERNELS, source + ".cu")) as file:
            text = file.read()
        flags = " ".join("-D%s=%s" % item for item in defines.items())
        return os.path.dirname(self.write(os.path.join(name, "submission.cu"),
                                          "// kjudge_build: -O3 %s\n%s" % (flags, text)))

    def python_submission(self, name, source, **defines):
        """A folder with kernels/SOURCE.py as submission.py and kernels/SOURCE.c, which begins with
        #define name value."""
        folder = self.path(name)
        os.makedirs(folder)
        shutil.copy(os.path.join(KERNELS, source + ".py"), os.path.join(folder, "submission.py"))
        with open(os.path.join(KERNELS, source + ".c")) as file:
            text = file.read()
        lines = "".join("#define %s %s\n" % item for item in defines.items())
        self.write(os.path.join(name, source + ".c"), lines + text)
        return folder

    def kjudge(self, *command, statuses=(0,)):
        done = subprocess.run([BINARY, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.environment)
        if done.returncode not in statuses:
            raise Failed("kjudge %s: exit status %d\n%s%s" % (" ".join(command), done.returncode,
                                                             done.stdout[-3000:], done.stderr[-3000:]))
        return json.loads(done.stdout)

    def capture(self, challenge, bundle, submission=None, role="submission"):
        """Path of the bundle, or the message where the submission is not accepted."""
        path = self.path(bundle + ".kjb")
        told = self.kjudge("capture", *([submission] if submission else []), "--role", role, "--challenge",
                           challenge, "-o", path, "--json", statuses=(0, 1))
        if told["verdict"] != "accepted":
            raise Failed("%s: %s: %s\n%s" % (bundle, told["verdict"], told["message"], told["log"][-3000:]))
        return path

    def replay(self, challenge, submission, baseline, reference, *more):
        """The result of one evaluation on fresh hidden inputs, with its wall seconds."""
        start = time.monotonic()
        result = self.kjudge("replay", "--challenge", challenge, "--submission", submission, "--baseline",
                             baseline, "--reference", reference, "--json", *more, statuses=(0, 1))
        if result["verdict"] != "accepted":
            raise Failed("replay: %s: %s" % (result["verdict"], result["message"]))
        result["wall_s"] = time.monotonic() - start
        return result


def times_of(arm):
    return statistics.median(replay["event_ns"] for replay in arm)


def facts_of(result):
    """What the tables need of a result, and every pair's times: [baseline, submission, who was first]."""
    facts = {"wall_s": result["wall_s"], "speedup": result["score"]["speedup"],
             "interval": [result["score"]["interval"]["low"], result["score"]["interval"]["high"]],
             "phases": {p["name"]: p["seconds"] for p in result["phases"]}, "shapes": {}}
    rounds = {shape["name"]: shape for shape in result["shapes"]}
    for shape in result["score"]["shapes"]:
        of = rounds[shape["name"]]
        facts["shapes"][shape["name"]] = {
            "speedup": shape["speedup"], "interval": [shape["interval"]["low"], shape["interval"]["high"]],
            "baseline_ns": shape["baseline_ns"], "submission_ns": shape["submission_ns"],
            "replays_per_arm": of["replays_per_arm"],
            "voids": sum(pair["voids"] for r in of["rounds"] for pair in r["pairs"]),
            "clock_mhz": [r.get("clock_mhz") for r in of["rounds"]],
            "tick_ns": max(r["clock_tick_ns"] for r in of["rounds"]),
            "rounds": [[[times_of(pair["baseline"]), times_of(pair["submission"]), pair["first"]]
                        for pair in r["pairs"]] for r in of["rounds"]]}
    return facts


def share(values, condition):
    return sum(1 for value in values if condition(value)) / len(values)


def quantile(values, part):
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def deviation(values):
    return statistics.stdev(values) if len(values) > 1 else math.nan


def variances(evaluations):
    """Standard deviations of log ratios within rounds, of rounds beyond what their pairs explain, and of
    evaluations beyond what their rounds explain; a negative difference of variances is 0. `evaluations`:
    lists of rounds, each a list of log ratios, all of one size."""
    per_round, per_evaluation = len(evaluations[0][0]), len(evaluations[0])
    within = statistics.mean(statistics.variance(r) for e in evaluations for r in e)
    means = [[statistics.mean(r) for r in e] for e in evaluations]
    of_means = statistics.mean(statistics.variance(m) for m in means)
    between = max(0.0, of_means - within / per_round)
    beyond = math.nan
    if len(evaluations) > 1:
        grand = statistics.variance([statistics.mean(m) for m in means])
        beyond = math.sqrt(max(0.0, grand - of_means / per_evaluation))
    return math.sqrt(within), math.sqrt(between), beyond


def table(head, rows):
    rows = [head] + [[cell if isinstance(cell, str) else "%.4g" % cell for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()


def measure_and_show(arguments, bench, measure, show):
    """What every bench does. Where one evaluation fails, the table of those before it is shown too."""
    record, failed = Record(arguments, bench), None
    if not arguments.merge:
        try:
            measure(arguments, record)
        except OutOfTime:
            pass
        except Failed as error:
            failed = error
    if record.evaluations:
        show(record)
    elif not failed:
        failed = Failed("no evaluation was finished; give it more --seconds")
    if failed:
        raise failed


def run(main):
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), failed))
