# SPDX-License-Identifier: Apache-2.0
"""kjudge judge: what is damaged or cannot be read stops nobody else; it is left out or refused, told at every
call, and the exit code says so. And a challenge that was changed before anything was judged with it."""

import hashlib
import json
import os
import shutil

import _kjudge

WRONG = "raise ValueError('%s')\n"


class JudgeLeavesOut(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()

    def hand_in(self, *runs):
        for run in runs:
            self.write("from/%s.py" % run, WRONG % run)

    def judge(self, *more, status=0):
        out, err = self.run_kjudge("judge", "results", "--challenge", self.challenge, "--unsafe", *more,
                                   status=status)
        self.said = err
        return out

    def three_of_which_two_wait(self):
        self.hand_in("ada", "ben", "cyd")
        self.judge("--from", "from")
        for number in (2, 3):
            for folder in ("evaluations", "claims"):
                shutil.rmtree(self.path("results/submissions/%d" % number, folder))

    def assert_others_judged(self, number=3, run="cyd"):
        self.assertIn("%d %s: runtime_error" % (number, run), self.said)

    def age(self, path, seconds):
        stat = os.stat(self.path(path))
        os.utime(self.path(path), (stat.st_atime - seconds, stat.st_mtime - seconds))

    def test_an_empty_lease_stops_nobody_else_and_is_over_after_a_day(self):
        self.three_of_which_two_wait()
        lease = "results/submissions/2/claims/1/lease.json"
        os.makedirs(self.path("results/submissions/2/claims/1/work"))
        self.write(lease, "")
        self.age(lease, 3600)
        self.judge(status=3)
        self.assertIn("kjudge: malformed: 2 ben: left out: " + lease, self.said)
        self.assertIn("kjudge fsck says what to do", self.said)
        self.assert_others_judged()
        self.judge(status=3)
        self.assertIn("2 ben: left out: " + lease, self.said)
        self.age(lease, 86400)
        self.judge()
        self.assert_others_judged(2, "ben")

    def test_a_lease_that_is_gone_stops_nobody_else_and_is_over_after_a_day(self):
        self.three_of_which_two_wait()
        work = "results/submissions/2/claims/1/work"
        os.makedirs(self.path(work))
        self.judge(status=6)
        self.assertIn("kjudge: host: 2 ben: left out: results/submissions/2/claims/1/lease.json: No such file",
                      self.said)
        self.assert_others_judged()
        self.age(work, 90000)
        self.judge()
        self.assert_others_judged(2, "ben")

    def test_claims_that_are_no_folder_stop_nobody_else(self):
        self.three_of_which_two_wait()
        self.write("results/submissions/2/claims", "")
        self.judge(status=6)
        self.assertIn("kjudge: host: 2 ben: left out: ", self.said)
        self.assert_others_judged()

    def test_who_has_the_same_files_as_one_that_is_damaged_is_judged(self):
        for run in ("ada", "ben"):
            self.write("from/%s.py" % run, WRONG % "same")
        self.judge("--from", "from")
        for number in (1, 2):
            for folder in ("evaluations", "claims"):
                shutil.rmtree(self.path("results/submissions/%d" % number, folder))
        os.remove(self.path("results/submissions/1/files/submission.py"))
        self.judge(status=3)
        self.assertIn("1 ada: left out: ", self.said)
        self.assert_others_judged(2, "ben")

    def test_files_that_are_gone_or_changed_stop_nobody_else(self):
        self.three_of_which_two_wait()
        shutil.rmtree(self.path("results/submissions/2/files"))
        self.judge(status=3)
        self.assertIn("2 ben: left out: results/submissions/2/files: is missing", self.said)
        self.assert_others_judged()
        for text, why in ((WRONG % "other", "are not what was handed in"), (None, "no submission.py")):
            shutil.rmtree(self.path("results/submissions/2/files"), ignore_errors=True)
            os.mkdir(self.path("results/submissions/2/files"))
            if text:
                self.write("results/submissions/2/files/submission.py", text)
            self.judge(status=3)
            self.assertIn("2 ben: left out: results/submissions/2/files: ", self.said)
            self.assertIn(why, self.said)
        self.assertFalse(os.path.exists(self.path("results/submissions/2/evaluations")))

    def test_an_empty_file_of_a_run_stops_nobody_else(self):
        self.hand_in("ada")
        self.judge("--from", "from")
        run = "results/runs/%s.json" % hashlib.sha256(b"ben").hexdigest()
        self.write(run, "")
        self.hand_in("ben", "cyd")
        for call in ("first", "again"):
            with self.subTest(call):
                self.judge("--from", "from", status=3)
                self.assertIn("kjudge: malformed: ben.py: left out: " + run, self.said)
                if call == "first":
                    self.assert_others_judged(2)
        self.judge("--from", "from", "--jobs", "1", status=3)

    def test_the_number_of_a_lost_submission_is_given_to_no_other(self):
        self.hand_in("ada", "ben")
        self.judge("--from", "from")
        shutil.rmtree(self.path("results/submissions/2"))
        os.remove(self.path("from/ben.py"))
        self.judge("--from", "from")
        self.hand_in("cyd")
        self.judge("--from", "from")
        self.assert_others_judged(3)
        shutil.rmtree(self.path("results/submissions/3"))
        self.write("dan.py", WRONG % "dan")
        out, err = self.run_kjudge("submit", "dan.py", "--results", "results", "--challenge", self.challenge,
                                   "--run", "dan", "--no-wait", status=None)
        self.assertEqual(sorted(os.listdir(self.path("results/submissions"))), ["1", "4"], out + err)

    def test_what_cannot_be_read_is_refused(self):
        self.hand_in("ada", "cyd")
        self.write("from/ben/submission.py", WRONG % "ben")
        self.write("from/ben/more.py", "")
        self.write("from/dan/submission.py", WRONG % "dan")
        self.write("from/eve.tar", "")
        unreadable = ["from/ada.py", "from/ben/more.py", "from/dan", "from/eve.tar"]
        for name in unreadable:
            os.chmod(self.path(name), 0)
        drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        process = self.popen([*drop, _kjudge.BINARY, "judge", "results", "--challenge", self.challenge, "--unsafe",
                              "--from", "from", "--json"], cwd=self.folder, env=self.environment)
        out, self.said = process.communicate()
        for name in unreadable:
            os.chmod(self.path(name), 0o755)
        self.assertEqual(process.returncode, 1, self.said)
        done = json.loads(out)
        self.assertEqual([one["name"] for one in done["refused"]], ["ada.py", "ben", "dan", "eve.tar"])
        for one, name in zip(done["refused"], unreadable):
            self.assertIn("%s cannot be read: Permission denied" % os.path.basename(name), one["message"])
        self.assertEqual([one["run"] for one in done["judged"]], ["cyd"])

    def test_the_kept_copy_of_a_challenge_does_not_go_stale(self):
        self.judge()
        self.change_challenge(bounty="a mug")
        self.write("from/ada.py", _kjudge.RIGHT)
        self.judge("--from", "from")
        with open(self.path("results/challenges/softmax/1/challenge.json")) as file:
            self.assertEqual(json.load(file)["bounty"], "a mug")
        self.assertEqual(os.listdir(self.path("results/challenges/softmax")), ["1"])
        out, _ = self.run_kjudge("rank", "results", "softmax:float32", "--json")
        self.assertEqual(json.loads(out)["bounty"], "a mug")
        # One that cannot be read is kept anew.
        self.write("results/challenges/softmax/1/challenge.json", "{")
        self.judge()
        self.run_kjudge("rank", "results", "softmax:float32")
        # From now on a change needs a new version, whatever became of the result.
        self.change_challenge(bounty="a bag")
        for text in (None, "{"):
            if text:
                self.write("results/submissions/1/evaluations/2/result.json", text)
            self.judge(status=2)
            self.assertIn("raise the version", self.said)
        with open(self.path("results/challenges/softmax/1/challenge.json")) as file:
            self.assertEqual(json.load(file)["bounty"], "a mug")


if __name__ == "__main__":
    _kjudge.main()
