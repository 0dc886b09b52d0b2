# SPDX-License-Identifier: Apache-2.0
"""What a contestant's process does to files and processes around it ends with it."""

import os

import _kjudge

SLOW = _kjudge.RIGHT.replace("  for (long row", "  for (volatile long i = 0; i < 1000000; ++i) {}\n  for (long row")

REPLACES = """
import glob, shutil
for path in glob.glob(%r + "/kjudge/*-baseline-*.kjb"):
    shutil.copyfile(%r, path)
"""

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
"""


class LeftBehind(_kjudge.Case):
    def test_replaced_baseline_does_not_count(self):
        challenge = self.small_challenge()
        cache = self.path("own-cache")
        slow = self.write("slow.py", SLOW)
        self.run_kjudge("capture", slow, "--challenge", challenge, "-o", "slow.kjb",
                        XDG_CACHE_HOME=cache)
        self.evaluate(slow, "--challenge", challenge, "--pairs", "1", XDG_CACHE_HOME=cache)
        forger = self.write("forger.py", REPLACES % (cache, self.path("slow.kjb")) + SLOW)
        result = self.evaluate(forger, "--challenge", challenge, "--pairs", "1",
                               XDG_CACHE_HOME=cache)
        self.assertEqual(result["verdict"], "accepted", result["message"])
        # Its kernel is some hundred times slower than the true baseline, and as fast as the false.
        self.assertLess(result["score"]["speedup"], 0.3)

    def test_daemon_ends_with_the_capture(self):
        submission = self.write("daemon.py", DAEMON + _kjudge.RIGHT)
        result = self.evaluate(submission, "--challenge", self.small_challenge(), "--pairs", "1")
        self.assertEqual(result["verdict"], "accepted", result["message"])
        self.assert_nothing_left()

    def test_folders_of_killed_commands_stay_in_tmpdir_for_ever(self):
        challenge = self.small_challenge()
        slow = self.write("slow.py", "import time\ntime.sleep(1000)\n" + _kjudge.RIGHT)

        def start(number):
            before = set(os.listdir(self.temporary))
            process = self.start("capture", slow, "--challenge", challenge, "-o", "%d.kjb" % number)
            self.wait_for(lambda: any("-capture." in name for name in set(os.listdir(self.temporary)) - before),
                          "capture's folder")
            return process, set(os.listdir(self.temporary)) - before
        killed, left = start(1)
        living, held = start(2)
        killed.kill()
        killed.wait()
        self.assertLessEqual(left | held, set(os.listdir(self.temporary)))
        last, _ = start(3)
        now = set(os.listdir(self.temporary))
        self.assertEqual(left & now, set())
        self.assertLessEqual(held, now)
        for process in (living, last):
            process.terminate()
            self.assertEqual(process.wait(), 143)
        self.assert_nothing_left()


if __name__ == "__main__":
    _kjudge.main()
