# SPDX-License-Identifier: Apache-2.0
"""Capture and workers killed at every step: a verdict or a judge error, no hang, nothing left."""

import re
import os

import _kjudge

KILL = "import os, signal\n\n\ndef die():\n    os.kill(os.getpid(), signal.SIGKILL)\n\n\n"


class KilledProcesses(_kjudge.Case):
    def test_capture(self):
        challenge = self.small_challenge()
        steps = {
            "import": KILL + "die()\n",
            "prepare": KILL + "def prepare(ctx):\n    die()\n\n\ndef kernel_fn(s, i, o):\n    pass\n",
        }
        for call in (1, 2, 3, 4):  # two eager calls, the capture, the first of the second shape
            steps["call %d" % call] = _kjudge.RIGHT + KILL + (
                "calls = [0]\nright = kernel_fn\n\n\ndef kernel_fn(s, i, o):\n    calls[0] += 1\n"
                "    if calls[0] == %d:\n        die()\n    right(s, i, o)\n" % call)
        steps["export"] = _kjudge.RIGHT + KILL + (
            "import sys, threading, time\n\n\ndef watch():\n"
            "    folder = os.path.dirname(os.getcwd()) + '/made'\n"
            "    while not any('.kjb' in name for name in os.listdir(folder)):\n        pass\n"
            "    die()\n\n\nthreading.Thread(target=watch, daemon=True).start()\n")
        for step, source in steps.items():
            with self.subTest(step):
                path = self.write("killed.py", source)
                result = self.evaluate(path, "--challenge", challenge, "--pairs", "1", status=1)
                self.assertEqual(result["verdict"], "runtime_error", result["message"])
                self.assertIn("SIGKILL, ", result["message"])
                self.assertIn("must not kill itself", result["message"])
                self.assert_nothing_left()

    def test_the_kernels_of_a_crash_are_named(self):
        challenge = self.small_challenge()
        several = _kjudge.RIGHT.replace(
            "KJ_KERNEL(softmax", "KJ_KERNEL(first, (float *, out)) { (void)out; }\nKJ_KERNEL(softmax").replace(
            '    return driver.load(driver.build("softmax.c")).kernel("softmax")',
            '    module = driver.load(driver.build("softmax.c"))\n'
            '    return module.kernel("first"), module.kernel("softmax")').replace(
            "    state.launch", "    for _ in range(2):\n        state[0].launch(1, 1, outputs.y)\n"
            "    state[1].launch")
        at_once = several.replace("float maximum", "if (row == 1) __builtin_trap();\n    float maximum")
        # Before a worker runs it there are two eager calls of each shape and a replay.
        later = several.replace("float maximum", "static int calls;\n    if (row == 1 && rows == 64 && "
                                "++calls > 3) __builtin_trap();\n    float maximum")
        for source, words in ((at_once, "one of the kernels first, softmax failed: "),
                              (later, "one of 3 kernels (first: nodes 0, 1; softmax: node 2) faulted while it ran")):
            with self.subTest(words):
                path = self.write("crash.py", source)
                result = self.evaluate(path, "--challenge", challenge, "--pairs", "1", status=1)
                self.assertEqual(result["verdict"], "gpu_fault", result["message"])
                self.assertIn(words, result["message"])
        path = self.write("crash.py", _kjudge.RIGHT.replace("float maximum", "__builtin_trap();\n    float maximum"))
        result = self.evaluate(path, "--challenge", challenge, "--pairs", "1", status=1)
        self.assertIn("kernel softmax failed: ", result["message"])

    def kill_points(self):
        """The steps that lib/replay/protocol.cc names."""
        with open(os.path.join(_kjudge.ROOT, "lib", "replay", "protocol.cc")) as file:
            source = file.read()
        lists = dict(re.findall(r"k(\w+)Steps\[\] = \{([^}]*)\}", source))
        steps = {actor: re.findall(r'"([\w-]+)"', text) for actor, text in lists.items()}
        self.assertGreater(len(steps["Worker"]), 5)
        self.assertGreater(len(steps["Supervisor"]), 5)
        return steps

    def test_workers(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        self.evaluate(right, "--challenge", challenge, "--pairs", "1")
        for arm in ("baseline", "submission"):
            for step in self.kill_points()["Worker"]:
                with self.subTest(arm=arm, step=step):
                    out, err = self.run_kjudge("selftest", right, "--challenge", challenge, "--pairs",
                                               "1", "--json", status=None, timeout=60,
                                               KJUDGE_TEST_KILL="%s:%s" % (arm, step))
                    verdict = re.search(r'"verdict": "(\w+)"', out)
                    self.assertIsNotNone(verdict, out + err)
                    self.assertIn(verdict[1], ("judge_error", "runtime_error", "gpu_fault"), out)
                    if arm == "baseline":
                        self.assertEqual(verdict[1], "judge_error", out)
                    self.assert_nothing_left()

    def test_supervisor(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        self.evaluate(right, "--challenge", challenge, "--pairs", "1")
        for step in self.kill_points()["Supervisor"]:
            with self.subTest(step):
                self.run_kjudge("selftest", right, "--challenge", challenge, "--pairs", "1", status=-9,
                                timeout=60, KJUDGE_TEST_KILL="supervisor:" + step)
                self.wait_for(lambda: not self.processes(), "end of all processes", seconds=5)
                self.assertEqual([n for n in os.listdir("/dev/shm") if "kjudge" in n], [])


if __name__ == "__main__":
    _kjudge.main()
