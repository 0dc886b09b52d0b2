# SPDX-License-Identifier: Apache-2.0
"""judge --jobs: a judge for each device at the same time, as one."""

import json
import os
import signal

import _kjudge


class JudgeJobs(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.environment["KJUDGE_HOST_DEVICES"] = "2"
        self.challenge = self.small_challenge()
        self.arguments = ("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe", "--jobs", "2")

    def hand_in(self, *runs):
        for run in runs:
            self.write("from/%s.py" % run, _kjudge.RIGHT + "# %s\n" % run)

    def evaluations(self):
        top = self.path("results/submissions")
        if not os.path.isdir(top):
            return {}
        return {int(n): os.listdir(os.path.join(top, n, "evaluations")) for n in os.listdir(top)
                if os.path.isdir(os.path.join(top, n, "evaluations"))}

    def test_two_devices_share_the_queue(self):
        self.hand_in("ada", "ben")
        self.write("from/eve.zip", "not an archive")
        self.write("from/fay.py", "raise ValueError('no')\n")
        out, err = self.run_kjudge(*self.arguments, "--json", "--pages", "site", status=1)
        done = json.loads(out)
        self.assertEqual(sorted((j["run"], j["verdict"]) for j in done["judged"]),
                         [(run, "accepted") for run in ("ada", "ben")] + [("fay", "runtime_error")])
        self.assertEqual([r["name"] for r in done["refused"]], ["eve.zip"])
        self.assertEqual(err.count("eve.zip: refused"), 1, err)
        for run in ("ada", "ben"):
            self.assertEqual(err.count(run + ": accepted"), 1, err)
        self.assertEqual(self.evaluations(), {n: ["1"] for n in (1, 2, 3)})
        # Both took part: the first capture of one outlasts the other's taking of its claim.
        holders = set()
        for number in range(1, 4):
            with open(self.path("results/submissions/%d/claims/1/lease.json" % number)) as file:
                holders.add(json.load(file)["holder"]["pid"])
        self.assertEqual(len(holders), 2)
        for number in range(1, 4):
            with open(self.path("site/evaluation/%d.html" % number)) as file:
                self.assertNotIn("data-refresh", file.read())
        out, err = self.run_kjudge(*self.arguments, status=1)
        self.assertEqual(out, "")
        self.assertEqual(err.count("nothing was waiting"), 1, err)
        self.assert_nothing_left()

    def test_an_interrupt_is_for_all(self):
        self.hand_in("ada", "ben")
        judge = self.start(*self.arguments, "--watch")
        self.wait_for(lambda: self.evaluations() == {1: ["1"], 2: ["1"]}, "verdicts")
        self.hand_in("cyd")
        self.wait_for(lambda: os.path.exists(self.path("results/submissions/3/claims/1/work")), "a claim")
        _kjudge.interrupt(judge, signal.SIGTERM)
        judge.communicate()
        self.assertEqual(judge.returncode, 128 + signal.SIGTERM)
        self.assertFalse(os.path.exists(self.path("results/submissions/3/claims/1/work")))
        self.assert_nothing_left()

    def test_one_that_is_killed_is_told(self):
        self.hand_in("ada", "ben")
        self.write("from/ada.py", "import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)\n"
                   % self.path("go") + _kjudge.RIGHT)
        judge = self.start(*self.arguments)
        self.wait_for(lambda: self.evaluations().get(2) == ["1"], "ben's verdict")
        with open(self.path("results/submissions/1/claims/1/lease.json")) as file:
            os.kill(json.load(file)["holder"]["pid"], signal.SIGKILL)
        self.write("go", "")
        out, err = judge.communicate()
        self.assertRegex(err, r"the judge of device [01] was killed by SIGKILL \(Killed\); judge again")
        self.assertEqual(judge.returncode, 5)
        self.assertIn("ben", out)

    def test_there_must_be_so_many_devices(self):
        self.hand_in("ada")
        _, err = self.run_kjudge(*self.arguments[:-1], "3", status=2)
        self.assertIn("device 2: the host driver has 2 devices", err)
        self.assertFalse(os.path.exists(self.path("results")))
        self.run_kjudge(*self.arguments[:-1], "0", status=2)


if __name__ == "__main__":
    _kjudge.main()
