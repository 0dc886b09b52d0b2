# SPDX-License-Identifier: Apache-2.0
"""Several kjudge judge on one results directory: each submission is judged once, however they die.

    KJUDGE_TEST_KILLS=500 several_judges.py SeveralJudges.test_killed_at_random   the long form
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import _kjudge

# What a network namespace of its own makes of a judge: one with another device, as on another node.
ELSEWHERE = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]


def usable_elsewhere():
    return subprocess.run([*ELSEWHERE, "true"], stderr=subprocess.DEVNULL).returncode == 0


class SeveralJudges(_kjudge.Case):
    def setUp(self):
        super().setUp()
        if not usable_elsewhere():
            self.skipTest("no network namespaces here")
        self.challenge = self.small_challenge()
        self.arguments = ["judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe"]

    def hand_in(self, *runs):
        for run in runs:
            # Whole at once: a judge may look at any moment.
            path = self.write("whole.py", _kjudge.RIGHT + "# %s\n" % run)
            os.makedirs(self.path("from"), exist_ok=True)
            os.rename(path, self.path("from", run + ".py"))

    def start_elsewhere(self, *more):
        return subprocess.Popen([*ELSEWHERE, _kjudge.BINARY, *self.arguments, *more], text=True,
                                cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process):
        out, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, out + err)
        return out, err

    def has_children(self, pid):
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                if file.read().split():
                    return True
        return False

    def submission(self, number, *parts):
        return self.path("results", "submissions", str(number), *parts)

    def numbers(self, *parts):
        folder = self.path("results", *parts)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(int(name) for name in names if not name.startswith("."))

    def evaluations(self):
        """{run: [verdict, ...]}; each run must have one submission."""
        found = {}
        for number in self.numbers("submissions"):
            with open(self.submission(number, "submission.json")) as file:
                run = json.load(file)["run"]
            self.assertNotIn(run, found)
            found[run] = []
            for evaluation in self.numbers("submissions", str(number), "evaluations"):
                with open(self.submission(number, "evaluations", str(evaluation), "result.json")) as file:
                    found[run].append(json.load(file)["verdict"])
        return found

    def assert_nothing_unfinished(self):
        for folder, folders, files in os.walk(self.path("results")):
            for name in folders + files:
                self.assertFalse(name.startswith(".new-") or name in ("work", "dropped") or ".tmp." in name,
                                 (folder, name))

    def test_two_share_the_work(self):
        runs = ["r%d" % i for i in range(6)]
        self.hand_in(*runs)
        judges = [self.start_elsewhere("--json") for _ in range(2)]
        judged = [[j["run"] for j in json.loads(self.finish(judge)[0])["judged"]] for judge in judges]
        self.assertEqual(sorted(judged[0] + judged[1]), runs)
        self.assertEqual(self.evaluations(), {run: ["accepted"] for run in runs})
        self.assert_nothing_unfinished()

    def test_killed_at_random(self):
        self.arguments += ["--pages", "site"]
        kills = int(os.environ.get("KJUDGE_TEST_KILLS", "15"))
        seed = random.randrange(1 << 32)
        print("seed", seed, file=sys.stderr)
        draw = random.Random(seed)
        judges = [None, None]
        runs, killed, judged = ["r0", "r1"], 0, ["r0", "r1"]
        for run in runs:
            self.hand_in(run)
            start = time.monotonic()
            self.finish(self.start_elsewhere())
            whole = min(time.monotonic() - start, 4)  # of the second: the baseline is known by then
        while killed < kills:
            if len(judged) == len(runs):  # else the judges would have ended before a kill
                runs.append("r%d" % len(runs))
                self.hand_in(runs[-1])
            for i, judge in enumerate(judges):
                if judge is None or judge.poll() is not None:
                    if judge is not None:
                        judge.communicate()
                    judges[i] = self.start_elsewhere()
            time.sleep(draw.uniform(0, 1.5 * whole))
            victim = draw.choice(judges)
            killed += victim.poll() is None
            victim.kill()
            victim.communicate()
            evaluations = self.evaluations()
            for run, verdicts in evaluations.items():
                self.assertLessEqual(len(verdicts), 1, run)
            judged = [run for run, verdicts in evaluations.items() if verdicts]
        for judge in judges:
            judge.communicate()
        self.finish(self.start_elsewhere())
        self.assertEqual(self.evaluations(), {run: ["accepted"] for run in runs})
        self.assert_nothing_unfinished()
        # Nor does a page say for ever that something waits or runs.
        for number in self.numbers("submissions"):
            with open(self.path("site", "evaluation", "%d.html" % number)) as file:
                page = file.read()
            self.assertTrue("accepted" in page and "data-refresh" not in page, number)
        self.assertEqual(os.listdir(self.path("site", ".kjudge-running")), [])
        print("%d kills of judges at work, %d submissions" % (killed, len(runs)), file=sys.stderr)

    def test_stopped_past_its_lease(self):
        self.hand_in("ada")
        stopped = self.start_elsewhere("--lease", "1")
        self.wait_for(lambda: os.path.isdir(self.submission(1, "claims", "1", "work")), "claim")
        # It knows that it has the claim once it has begun to judge.
        self.wait_for(lambda: self.has_children(stopped.pid), "capture")
        stopped.send_signal(signal.SIGSTOP)
        self.assertTrue(os.path.isdir(self.submission(1, "claims", "1", "work")))
        _, err = self.finish(self.start_elsewhere("--lease", "1000"))
        while not self.numbers("submissions", "1", "evaluations"):
            time.sleep(0.2)
            _, err = self.finish(self.start_elsewhere("--lease", "1000"))
        self.assertIn("1 ada: accepted", err)
        with open(self.submission(1, "evaluations", "1", "result.json")) as file:
            stored = file.read()
        stopped.send_signal(signal.SIGCONT)
        _, err = self.finish(stopped)
        self.assertIn("1 ada: another judge took over", err)
        self.assertEqual(self.numbers("submissions", "1", "evaluations"), [1])
        with open(self.submission(1, "evaluations", "1", "result.json")) as file:
            self.assertEqual(file.read(), stored)
        self.assertEqual(self.numbers("submissions", "1", "claims"), [1, 2])
        self.assert_nothing_unfinished()

    def test_what_another_has_is_left_to_it(self):
        self.hand_in("ada")
        first = self.start_elsewhere()
        self.wait_for(lambda: os.path.isdir(self.submission(1, "claims", "1", "work")), "claim")
        first.send_signal(signal.SIGSTOP)
        _, err = self.finish(self.start_elsewhere())
        self.assertIn("with other judges", err)
        first.send_signal(signal.SIGCONT)
        self.finish(first)
        self.assertEqual(self.evaluations(), {"ada": ["accepted"]})
        self.assertEqual(self.numbers("submissions", "1", "claims"), [1])

    def test_interrupted_gives_it_up_at_once(self):
        self.hand_in("ada")
        first = self.start_elsewhere("--lease", "1000")
        self.wait_for(lambda: os.path.isdir(self.submission(1, "claims", "1", "work")), "claim")
        first.send_signal(signal.SIGINT)
        first.communicate()
        self.assertEqual(first.returncode, 130)
        self.assertFalse(os.path.exists(self.submission(1, "claims", "1", "work")))
        self.finish(self.start_elsewhere())
        self.assertEqual(self.evaluations(), {"ada": ["accepted"]})


if __name__ == "__main__":
    if shutil.which("unshare") is None:
        raise SystemExit("unshare is not installed: apt-get install util-linux")
    _kjudge.main()
