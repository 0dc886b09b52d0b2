# SPDX-License-Identifier: Apache-2.0
"""What the recorder shows to, and hides from, the process that it is preloaded into."""

import os
import subprocess
import tempfile
import textwrap
import unittest

import _capture
from _capture import LIBRARY


class Lookup(unittest.TestCase):
    """The recorder stands before dlsym without being noticed."""

    def same_when_preloaded(self, folder, code):
        outputs = []
        for preload in ("", os.path.join(LIBRARY, "libkjudge_recorder.so")):
            done = subprocess.run(
                ["python3", "-c", textwrap.dedent(code)], cwd=folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                env=dict(os.environ, LD_PRELOAD=preload))
            self.assertEqual(done.returncode, 0, done.stdout)
            outputs.append(done.stdout)
        self.assertEqual(*outputs)
        return outputs[0]

    def test_rtld_next_starts_at_the_real_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            def library(name, text, *more):
                with open(os.path.join(folder, name + ".c"), "w") as file:
                    file.write(text)
                subprocess.run(["cc", "-shared", "-fPIC", "-O2", name + ".c", "-o",
                                "lib" + name + ".so", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"] +
                               list(more), cwd=folder, check=True)

            library("second", "int marker(void) { return 2; }")
            library("first", """
#define _GNU_SOURCE
#include <dlfcn.h>
int marker(void) { return 1; }
int next(void) { return ((int (*)(void))dlsym(RTLD_NEXT, "marker"))(); }
int any(void) { return dlsym(RTLD_DEFAULT, "marker") != 0; }
""", "-L.", "-lsecond")
            out = self.same_when_preloaded(folder, """
                import ctypes
                first = ctypes.CDLL("./libfirst.so")
                print(first.next(), first.marker(), first.any())""")
            self.assertEqual(out.split(), ["2", "1", "1"])

    def test_errors_are_those_of_the_real_one(self):
        out = self.same_when_preloaded(".", """
            import ctypes
            try:
                ctypes.CDLL(None).cuNothing
            except AttributeError as error:
                print(error)""")
        self.assertIn("undefined symbol: cuNothing", out)

    def test_only_the_named_symbols_are_shown(self):
        done = subprocess.run(["nm", "-D", "--defined-only",
                               os.path.join(LIBRARY, "libkjudge_recorder.so")],
                              capture_output=True, text=True, check=True)
        names = [line.split()[-1] for line in done.stdout.splitlines()]
        others = [name for name in names
                  if name not in ("dlsym", "InitializeInjection") and not name.startswith(("cu", "kjudge_record_"))]
        self.assertEqual(others, [])

    def test_it_needs_only_libc(self):
        done = subprocess.run(["readelf", "-d", os.path.join(LIBRARY, "libkjudge_recorder.so")],
                              capture_output=True, text=True, check=True)
        needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines()
                  if "NEEDED" in line]
        self.assertLessEqual(set(needed), {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2"})


if __name__ == "__main__":
    _capture.main()
