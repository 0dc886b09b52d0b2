# SPDX-License-Identifier: Apache-2.0
"""Runs the program for tests: in a folder of its own that is kept when a test fails."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("KJUDGE_BINARY", os.path.join(ROOT, "build-dev", "bin", "kjudge"))
SHARE = os.path.join(os.path.dirname(os.path.dirname(BINARY)), "share")  # made with the program
RIGHT = """
import driver

SOURCE = '''
#include <kjudge/host_kernel.h>
#include <math.h>

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    float maximum = x[0];
    for (long c = 1; c < cols; ++c) maximum = fmaxf(maximum, x[c]);
    float sum = 0;
    for (long c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - maximum);
    for (long c = 0; c < cols; ++c) y[c] /= sum;
  }
}
'''


def prepare(ctx):
    with open("softmax.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("softmax.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.launch(min(rows, 64), 1, outputs.y, inputs.x, rows, cols)
"""

# A line of --help: "-o,--output", "FILE", what it says, ["required", "default x", "KJUDGE_X"]
HelpEntry = collections.namedtuple("HelpEntry", "names value text notes is_option is_words")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kjudge-test-")
        # A private place for temporary files, so that a test can see what is left in it.
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KJUDGE_")}
        self.environment.update(
            KJUDGE_DRIVER="host", TMPDIR=self.temporary, XDG_CONFIG_HOME=os.path.join(self.folder, "config"),
            XDG_CACHE_HOME=os.environ.get("KJUDGE_TEST_CACHE", os.path.join(self.folder, "cache")))

    def tearDown(self):
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            print("kept: %s" % self.folder, file=sys.stderr)
        else:
            shutil.rmtree(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def change_challenge(self, **fields):
        """Of the challenge.json in self.challenge."""
        path = os.path.join(self.challenge, "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        challenge.update(fields)
        with open(path, "w") as file:
            json.dump(challenge, file)

    def small_challenge(self, rows=64, cols=48, **changes):
        """packages/softmax with one small shape and one test: judged in about a second. From hot caches:
        emptying them would be half of that, and is in the tests that judge packages/softmax itself."""
        folder = self.path("challenge")
        shutil.copytree(os.path.join(ROOT, "packages", "softmax"), folder)
        with open(os.path.join(folder, "challenge.json")) as file:
            challenge = json.load(file)
        shape = {"arch": "x86_64", "dtype": "float32", "dims": {"rows": rows, "cols": cols}}
        test = {"arch": "x86_64", "dtype": "float32", "dims": {"rows": 3, "cols": 5}}
        challenge.update(shapes=[shape], tests=[test], cache="hot")
        challenge.update(changes)
        with open(os.path.join(folder, "challenge.json"), "w") as file:
            json.dump(challenge, file)
        return folder

    def start(self, *arguments, cwd=None, **environment):
        return self.popen([BINARY, *arguments], cwd=cwd or self.folder, env=dict(self.environment, **environment))

    def popen(self, command, **options):
        """Of the test's own: it does not outlive it, however the test ends."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, text=True, **{**pipes, **options})

        def end():
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        self.addCleanup(end)
        return process

    def run_kjudge(self, *arguments, status=0, timeout=600, **environment):
        """Runs it to its end and asserts the exit status; returns (stdout, stderr). That another
        kjudge of this machine had the device for a while is left out: it is no matter of a test."""
        process = self.start(*arguments, **environment)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail("%s: no end within %d s\n%s%s" % (arguments, timeout, out, err))
        self.status = process.returncode
        if status is not None:
            self.assertEqual(process.returncode, status, "%s\n%s%s" % (arguments, out, err))
        return out, re.sub(r"(?m)^kjudge: waiting for .*\n", "", err)

    def commands(self):
        text, _ = self.run_kjudge("--help")
        return re.findall(r"^  (\w+)  ", text[text.index("Subcommands:"):], re.MULTILINE)

    def options_of(self, command):
        """Options and arguments of a command, as its --help has them: two lists of HelpEntry."""
        lists = {"Options:": [], "Positionals:": []}
        entries = None
        for line in self.run_kjudge(command, "--help")[0].splitlines():
            if not line.startswith("  "):
                entries = lists.get(line)
                continue
            self.assertIsNotNone(entries, line)
            match = re.match(r"  (\S+)(?: (\S+(?: \.\.\.)?))? +(.*)", line)
            names, value, text = match.groups(default="")
            notes = re.search(r" \[((?:required|default|KJUDGE_).*)\]$", text)
            entries.append(HelpEntry(names, value, text[:notes.start()] if notes else text,
                                     notes.group(1).split(", ") if notes else [],
                                     names.startswith("-"),
                                     "|" in value and value.islower()))
        return lists["Options:"], lists["Positionals:"]

    def evaluate(self, *arguments, status=0, **environment):
        """selftest --json as a dict."""
        out, _ = self.run_kjudge("selftest", *arguments, "--json", status=status, **environment)
        return json.loads(out)

    def sandbox_missing(self):
        """Why there can be no sandbox here; empty where there can."""
        out, _ = self.run_kjudge("doctor", "--json", status=None)
        finding = {f["name"]: f for f in json.loads(out)["findings"]}["sandbox"]
        return "" if finding["state"] == "ok" else finding["found"]

    def assert_nothing_left(self):
        """No process, no temporary file, no shared memory of the runs of this test."""
        deadline = time.monotonic() + 5
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)  # killed, not yet reaped by init
        self.assertEqual(left, [])
        self.assertEqual(os.listdir(self.temporary), [])
        self.assertEqual([n for n in os.listdir("/dev/shm") if "kjudge" in n], [])

    def processes(self):
        """Command lines of living processes that were started with this test's TMPDIR."""
        mark = ("TMPDIR=" + self.temporary).encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    mine = any(entry.startswith(mark) for entry in file.read().split(b"\0"))
                with open("/proc/%s/stat" % pid) as file:
                    zombie = file.read().rpartition(")")[2].split()[0] == "Z"
                if mine and not zombie:
                    with open("/proc/%s/cmdline" % pid, "rb") as file:
                        found.append(file.read().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def wait_for(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.fail("no %s within %d s" % (what, seconds))
            time.sleep(0.01)


def interrupt(process, number=signal.SIGINT):
    process.send_signal(number)


def main():
    if not os.access(BINARY, os.X_OK):
        sys.exit("%s: not built; set KJUDGE_BINARY" % BINARY)
    unittest.main(verbosity=2)
