# SPDX-License-Identifier: Apache-2.0
"""Runs the capture process on the host driver for tests, which are called with
LIBRARY_DIR CHECK_BUNDLE [unittest's arguments].
"""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

LIBRARY, CHECK_BUNDLE = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
HARNESS = os.path.join(LIBRARY, "harness")
sys.path.insert(0, HARNESS)

PRELUDE = """
import ctypes, os, threading
import driver
kernels = driver.load(os.environ["TEST_KERNELS"])
"""

SCALE = PRELUDE + """
def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
"""

# CUmemAllocationProp, for what maps memory itself.
MAPPING = PRELUDE + """
G = 2 << 20

class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("kind", ctypes.c_int),
                ("id", ctypes.c_int), ("rest", ctypes.c_uint64 * 2)]
"""


def shape(name="small", n=1000, factor=2.0, **changes):
    made = {
        "name": name, "timed": True, "arch": "x86_64", "dtype": "float32",
        "dims": {"n": n}, "scalars": {"factor": factor},
        "inputs": [{"name": "x", "dtype": "float32", "dims": [n], "inout": False,
                    "generator": {"kind": "normal", "a": 0.0, "b": 1.0, "c": 0.0, "row": 0, "size": 0,
                                  "other": "float64", "key_of": "", "source": ""}}],
        "outputs": [{"name": "y", "dtype": "float32", "dims": [n]}],
    }
    made.update(changes)
    return made


class Outcome:
    def __init__(self, folder, exit_status, output):
        self.folder, self.exit_status, self.output = folder, exit_status, output
        self.status = None
        path = os.path.join(folder, "status.json")
        if os.path.exists(path):
            with open(path) as file:
                self.status = json.load(file)
        self.bundle = os.path.join(folder, "bundle.kjb")

    def __getattr__(self, name):
        return self.status[name]

    def dump(self):
        """The bundle's text, after all of it was read and validated."""
        done = subprocess.run([CHECK_BUNDLE, self.bundle], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


class CaptureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory()
        cls.kernels = os.path.join(cls.built.name, "kernels.so")
        include = os.path.join(LIBRARY, "..", "..", "include")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", include, "-o", cls.kernels,
                        os.path.join(HERE, "kernels.c")], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.built.cleanup()

    def capture(self, source, shapes=None, memory_bytes=0, bundle_bytes=1 << 30, eager=False, files=(), role="submission",
                environment=()):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = temporary.name
        for name, text in dict(files, **{"submission.py": source}).items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(textwrap.dedent(text))
        request = {
            "format": "kjudge-capture/1", "submission": os.path.join(folder, "submission.py"),
            "bundle": os.path.join(folder, "bundle.kjb"),
            "status": os.path.join(folder, "status.json"), "role": role, "device": 0, "seed": 7,
            "eager": eager, "challenge": {"name": "test", "version": 1},
            "steps": os.path.join(folder, "steps"),
            "limits": {"memory_bytes": memory_bytes, "bundle_bytes": bundle_bytes}, "shapes": shapes or [shape()],
        }
        path = os.path.join(folder, "request.json")
        with open(path, "w") as file:
            json.dump(request, file)
        recorder = os.path.join(LIBRARY, "libkjudge_recorder.so")
        env = dict(os.environ, LD_PRELOAD=recorder, KJUDGE_RECORDER=recorder, KJUDGE_DRIVER="host",
                   KJUDGE_DRIVER_LIBRARY=os.path.join(LIBRARY, "libkjudge_host_driver.so"),
                   TEST_KERNELS=self.kernels, PYTHONDONTWRITEBYTECODE="1", TMPDIR=folder)
        env.update(environment)
        done = subprocess.run(["python3", os.path.join(HARNESS, "capture.py"), path], env=env,
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False)
        return Outcome(folder, done.returncode, done.stdout)

    def accepted(self, *arguments, **options):
        outcome = self.capture(*arguments, **options)
        self.assertEqual(outcome.exit_status, 0, outcome.output)
        self.assertEqual(outcome.verdict, "accepted", outcome.status)
        self.assertEqual((outcome.rule, outcome.message, outcome.traceback), ("", "", ""))
        return outcome

    def fails(self, verdict, source, *words, rule="", **options):
        outcome = self.capture(source, **options)
        self.assertEqual(outcome.exit_status, 0, outcome.output)
        self.assertEqual((outcome.verdict, outcome.rule), (verdict, rule), outcome.status)
        for word in words:
            self.assertIn(word, outcome.message)
        self.assertFalse(os.path.exists(outcome.bundle))
        return outcome

    def refused(self, rule, body, *words, prepare="None", helpers="", **options):
        """`body` is what kernel_fn does, `prepare` what state is; right but for the one thing."""
        source = PRELUDE + textwrap.dedent(helpers) + (
            "def prepare(ctx):\n    return %s\n" % prepare +
            "def kernel_fn(state, inputs, outputs):\n" + textwrap.indent(textwrap.dedent(body), "    "))
        return self.fails("refused", source, *words, rule=rule, **options)


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
