# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at any time ends everything within seconds, and leaves nothing behind."""

import os
import signal

import _kjudge

SLEEPS = "import time\n\ndef kernel_fn(state, inputs, outputs):\n    pass\n\nprint('up', flush=True)\n"


class Interrupt(_kjudge.Case):
    def interrupt(self, submission, condition, what, number=signal.SIGINT):
        challenge = self.small_challenge(rows=2048, cols=1024)
        process = self.start("selftest", submission, "--challenge", challenge, "--pairs", "3000")
        self.wait_for(condition, what)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + number, err)
        self.assertEqual(out, "")
        self.assertIn("interrupted", err)
        self.assert_nothing_left()

    def running(self, word):
        return lambda: any(word in line for line in self.processes())

    def test_while_the_contestants_code_runs(self):
        self.interrupt(self.write("sleeps.py", "import time\ntime.sleep(1000)\n"),
                       self.running("capture.py"), "capture")

    def test_while_build_sh_runs(self):
        self.write("slow/submission.py", SLEEPS)
        self.write("slow/build.sh", "sleep 1000 & sleep 1000\n")
        self.interrupt(self.path("slow"), self.running("sleep 1000"), "build")

    def test_while_workers_run(self):
        self.interrupt(self.write("right.py", _kjudge.RIGHT), self.running(" worker "), "worker")

    def test_terminated_while_workers_run(self):
        self.interrupt(self.write("right.py", _kjudge.RIGHT), self.running(" worker "), "worker",
                       signal.SIGTERM)

    def test_killed_while_workers_run(self):
        challenge = self.small_challenge(rows=2048, cols=1024)
        right = self.write("right.py", _kjudge.RIGHT)
        process = self.start("selftest", right, "--challenge", challenge, "--pairs", "3000")
        self.wait_for(self.running(" worker "), "worker")
        process.kill()
        process.communicate(timeout=60)
        self.wait_for(lambda: not self.processes(), "end of all processes")
        self.assertEqual([n for n in os.listdir("/dev/shm") if "kjudge" in n], [])


if __name__ == "__main__":
    _kjudge.main()
