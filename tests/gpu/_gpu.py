# SPDX-License-Identifier: Apache-2.0
"""Captures a folder of tests/gpu as a submission and replays its bundle in another process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.environ.get("KJUDGE_BINARY", os.path.join(ROOT, "build-dev", "bin", "kjudge"))
REBUILD_RUN = os.environ.get("KJUDGE_REBUILD_RUN", os.path.join(os.path.dirname(BINARY), "rebuild_run"))
REBUILD_RUN_LIBRARY = os.environ.get("KJUDGE_REBUILD_RUN_LIBRARY", os.path.join(
    ROOT, "build-dev", "tests", "gpu", "librebuild_run.so"))


def run(*command, status=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != status:
        raise AssertionError("%s: exit status %d\n%s%s" %
                             (" ".join(command[:6]), done.returncode, done.stdout[-6000:],
                              done.stderr[-6000:]))
    return done.stdout


def challenge(shapes):
    """x, float32 [n], gives y, float32 [m]; any y within 0.1 of the reference will do."""
    return {
        "format": "kjudge-challenge/1", "name": "gpu-test", "version": 1, "title": "GPU test",
        "author": "kjudge", "limits": {"replay_s": 3, "capture_s": 60},
        "tensors": {
            "inputs": [{"name": "x", "dtype": "float32", "shape": ["n"],
                        "generator": {"kind": "normal", "mean": 0, "deviation": 1}}],
            "outputs": [{"name": "y", "dtype": "float32", "shape": ["m"],
                         "checks": [{"kind": "close", "rtol": 0.1, "atol": 0.1}]}]},
        "shapes": [{"arch": "sm_*", "dtype": "float32", "name": name, "dims": dims}
                   for name, dims in shapes.items()]}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kjudge-gpu-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def package(self, source, shapes, name="challenge"):
        """A challenge whose baseline and reference are the submission in `source`, a folder."""
        package = self.path(name + ".challenge")
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
        with open(os.path.join(package, "challenge.json"), "w") as file:
            json.dump(challenge(shapes), file)
        with open(os.path.join(package, "TASK.md"), "w") as file:
            file.write("# A test\n")
        for role in ("baseline", "reference"):
            shutil.copy(os.path.join(source, "submission.py"), os.path.join(package, role + ".py"))
        return package

    def captured(self, submission, package, bundle):
        told = json.loads(run(BINARY, "capture", submission, "--challenge", package, "-o", bundle,
                              "--json"))
        self.assertEqual(told["verdict"], "accepted", told["message"] + told["log"])
        return told

    def replayed(self, bundle, runs, launches):
        """Inputs and outputs lie in the test's folder, see rebuild_run.cc."""
        return json.loads(run(REBUILD_RUN, bundle, self.folder, str(runs), str(launches)))


def python(*arguments, **options):
    return run(sys.executable, *arguments, **options)
