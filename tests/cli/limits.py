# SPDX-License-Identifier: Apache-2.0
"""Each limit of a challenge: its verdict, and a message that says the limit and what to do."""

import json
import os
import re
import shutil

import _kjudge

SLEEPS = "import time\ntime.sleep(%g)\n"
# One block of the kernel takes as long in a replay as in an eager call.
SLOW = _kjudge.RIGHT.replace("  for (long row", """  uint64_t start = kj_global_timer();
  while (block->index.x == 0 && kj_global_timer() - start < 1500000000) {
  }
  for (long row""", 1)


def in_prepare(lines):
    return _kjudge.RIGHT.replace("def prepare(ctx):\n", "def prepare(ctx):\n" + lines)


def in_kernel_fn(lines):
    return _kjudge.RIGHT.replace("cols = inputs.x.shape\n", "cols = inputs.x.shape\n" + lines)


def holding(lines):
    """`lines` make an array `held`, of which a graph reads a few bytes: a recording has all of it."""
    source = in_prepare("    global held\n" + lines)
    return source.replace("cols = inputs.x.shape\n", "cols = inputs.x.shape\n"
                          "    driver.copy(outputs.y, driver.Array(held.address, outputs.y.shape, outputs.y.dtype))\n")


class Limits(_kjudge.Case):
    def judge(self, source, limits, files=(), **environment):
        challenge = self.small_challenge(limits=limits)
        self.write("it/submission.py", source)
        for name, text in dict(files).items():
            self.write("it/" + name, text)
        result = self.evaluate(self.path("it"), "--challenge", challenge, "--pairs", "1", status=None,
                               **environment)
        self.assert_nothing_left()
        return result

    def over(self, verdict, words, source, limits, files=(), **environment):
        result = self.judge(source, limits, files, **environment)
        self.assertEqual(result["verdict"], verdict, result["message"])
        for word in words:
            self.assertIn(word, result["message"])

    def test_build_s(self):
        self.over("timeout", ("build.sh", "1.5 s", "build less"), _kjudge.RIGHT, {"build_s": 1.5},
                  {"build.sh": "sleep 60\n"})

    def test_build_sh_leaves_no_submission(self):
        for script in ("rm submission.py; mkfifo submission.py", "rm submission.py",
                       "mv submission.py x; ln -s x submission.py"):
            self.over("build_error", ("build.sh ended with status 0 and left no regular file submission.py",),
                      _kjudge.RIGHT, {}, {"build.sh": script + "\n"})
            shutil.rmtree(self.path("challenge"))

    def test_build_sh_that_cannot_be_started(self):
        """The same with a sandbox and without: the contestant's fault, and not the judge's."""
        challenge = self.small_challenge()
        self.write("it/submission.py", _kjudge.RIGHT)
        script = self.write("it/build.sh", "")
        ways = [()] if self.sandbox_missing() else [(), ("--sandbox",)]
        returns = "its first line ends in a carriage return, as lines do on Windows"
        for text, verdict, words in (
                ("#!/bin/sh\r\ntrue\r\n", "build_error", "build.sh cannot be started: " + returns),
                ("#!/usr/bin/env sh\r\ntrue\r\n", "build_error", returns),
                ("#! /no/such/shell -e\ntrue\n", "build_error",
                 "build.sh cannot be started: its first line names /no/such/shell, and there is no such program"),
                ("#!/etc\n", "build_error", "its first line names /etc,"),
                ("no_such_program\n", "build_error", "build.sh failed: exit status 127; its output is in the log"),
                ("true\n", "accepted", ""), ("", "accepted", ""), ("#!/bin/sh\ntrue\n", "accepted", "")):
            with open(script, "w", newline="") as file:
                file.write(text)
            os.chmod(script, 0o755)
            for way in ways:
                with self.subTest(text, way=way):
                    out, _ = self.run_kjudge("capture", self.path("it"), "--challenge", challenge, "-o",
                                             self.path("b.kjb"), "--json", *way, status=None)
                    outcome = json.loads(out)
                    self.assertEqual(outcome["verdict"], verdict, outcome)
                    self.assertIn(words, outcome["message"])

    def test_prepare_s_of_import(self):
        self.over("timeout", ("import of submission.py did not end within the limit of 1.5 s", "endless loop"),
                  SLEEPS % 60 + _kjudge.RIGHT, {"prepare_s": 1.5})

    def test_prepare_s_of_prepare(self):
        self.over("timeout", ("prepare did not end within the limit of 1.5 s", "endless loop"),
                  in_prepare("    while True: pass\n"), {"prepare_s": 1.5})

    def test_prepare_s_of_both_together(self):
        self.over("timeout", ("prepare did not end within", "1.5 s for import and prepare", "less"),
                  SLEEPS % 1 + in_prepare("    time.sleep(1)\n"), {"prepare_s": 1.5})

    def test_capture_s(self):
        self.over("timeout", ("kernel_fn of shape 64x48 did not end within the limit of 1.5 s", "endless loop"),
                  in_kernel_fn("    while True: pass\n"), {"capture_s": 1.5})

    def test_no_process_holds_up_its_own_limit(self):
        """Stopped, replaced, or in a call that lets no other thread of Python run."""
        stops = "import os\nos.kill(os.getpid(), 19)\n"
        prepare = "prepare did not end within the limit of 1.5 s"
        for words, source, limits in (
                ("import of submission.py did not end within the limit of 1.5 s", stops, {"prepare_s": 1.5}),
                (prepare, in_prepare("    import os; os.kill(os.getpid(), 19)\n"), {"prepare_s": 1.5}),
                (prepare, in_prepare("    import os; os.execvp('sleep', ['sleep', '1000'])\n"), {"prepare_s": 1.5}),
                (prepare, in_prepare("    import re; re.match('(a+)+$', 'a' * 40 + 'b')\n"), {"prepare_s": 1.5}),
                ("kernel_fn of shape 64x48 did not end within the limit of 1.5 s",
                 in_kernel_fn("    import os; os.kill(os.getpid(), 19)\n"), {"capture_s": 1.5})):
            with self.subTest(source):
                self.over("timeout", (words,), source, limits)
            shutil.rmtree(self.path("challenge"))

    def test_replay_s(self):
        self.over("timeout", ("kernel softmax", "took longer than 0.5 s and was stopped", "loop"), SLOW,
                  {"replay_s": 0.5})

    def test_memory_bytes(self):
        self.over("out_of_memory", ("prepare: cuMemAlloc of 33554432 bytes", "16777216 are allowed"),
                  in_prepare("    driver.empty((1 << 25,), 'uint8')\n"), {"memory_bytes": 1 << 24})

    def test_memory_beyond_all_addresses_says_why(self):
        self.over("out_of_memory", ("prepare: cuMemAlloc of 4611686018427387904 bytes: more than the 2199023255552 "
                                    "that a device has addresses for",),
                  in_prepare("    driver.empty((1 << 62,), 'uint8')\n"), {})

    def test_memory_of_the_device(self):
        self.over("out_of_memory", ("prepare", "cuMem", "CUDA_ERROR_OUT_OF_MEMORY"),
                  in_prepare("    driver.empty((1 << 34,), 'uint8')\n"), {},
                  KJUDGE_HOST_MEMORY=str(1 << 30))

    def test_memory_for_the_replay(self):
        """It fits in its capture, and not a second time beside the judge's buffers."""
        self.over("out_of_memory", ("recorded memory", "allocate less in prepare"),
                  holding("    held = driver.empty((1012 << 20,), 'uint8')\n"
                          "    driver.fill_bytes(held, 1)\n"), {}, KJUDGE_HOST_MEMORY=str(1 << 30))

    def test_output_bytes(self):
        flood = "    for i in range(10000):\n        print('line %d of many' % i)\n    print('the last')\n"
        result = self.judge(in_prepare(flood), {"output_bytes": 1024},
                            {"build.sh": "yes yes | head -c 1000000\necho; echo built\n"})
        self.assertEqual(result["verdict"], "accepted", result["message"])
        log = result["log"]
        self.assertLess(len(log), 3 * 1024)
        self.assertEqual(len(re.findall(r"\[\.\.\. \d+ bytes left out \.\.\.\]", log)), 2, log)
        for kept in ("yes\n", "built\n", "line 0 of many\n", "the last\n"):
            self.assertIn(kept, log)

    def test_output_of_a_traceback_is_short(self):
        result = self.judge(in_prepare("    raise ValueError('x' * 1000000)\n"), {"output_bytes": 1024})
        self.assertEqual(result["verdict"], "runtime_error", result["message"])
        self.assertLess(len(result["log"]), 100000)
        self.assertLess(len(result["message"]), 10000)

    def test_submission_bytes(self):
        self.over("refused", ("data.bin", "larger than 4096 bytes", "hand in less"), _kjudge.RIGHT,
                  {"submission_bytes": 4096}, {"data.bin": "x" * 8192})

    def test_bundle_bytes(self):
        self.over("refused", ("limit of 2000000 bytes", "free what kernel_fn does not need"),
                  holding("    import os\n    held = driver.array(list(os.urandom(4 << 20)), 'uint8')\n"),
                  {"bundle_bytes": 2000000})

    def test_bundle_bytes_count_what_is_not_zero(self):
        result = self.judge(holding("    held = driver.zeros((4 << 20,), 'uint8')\n"),
                            {"bundle_bytes": 2000000})
        self.assertEqual(result["verdict"], "accepted", result["message"])

    def test_bundle_bytes_count_what_kernels_can_reach(self):
        result = self.judge(in_prepare("    import os\n    global held\n"
                                       "    held = driver.array(list(os.urandom(4 << 20)), 'uint8')\n"),
                            {"bundle_bytes": 2000000})
        self.assertEqual(result["verdict"], "accepted", result["message"])
        self.assertIn("leaves out 1 allocation, 4.0 MiB", result["log"])


if __name__ == "__main__":
    _kjudge.main()
