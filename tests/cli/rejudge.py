# SPDX-License-Identifier: Apache-2.0
"""kjudge rejudge where not all of a set can be made again, or something else was judged since."""

import json
import os
import shutil

import _judge_again
import _kjudge


class Rejudge(_judge_again.Case):
    def test_what_cannot_be_made_again_is_left_out(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n", cyd=_kjudge.RIGHT + "# cyd\n")
        self.write("s.py", _kjudge.RIGHT + "# nk\n")
        self.run_kjudge("submit", "s.py", "--run", "nk", "--challenge", "softmax", "--results", "results",
                        "--no-keep", "--no-wait")
        self.run_kjudge("judge", "results", "--challenge", self.challenge, "--unsafe")
        for lost in ("files", "evaluations/1/bundle.kjb"):
            os.rename(self.path("results/submissions/2", lost), self.path(os.path.basename(lost)))
        self.run_kjudge("rejudge", "results", "--run", "nk", "--reason", "to see", status=2)
        made = self.json("rejudge", "results", "--challenge", "softmax", "--reason", "to see")
        self.assertEqual([e["submission"] for e in made["evaluations"]], [1, 3])
        self.assertIn("4 nk: its files were not to be kept; left out", self.said)
        self.assertIn("2 ben: its files are gone, and it has no recording; left out", self.said)
        # As an older kjudge made it, and what is lost since.
        with open(self.path("results/rejudgements/1/rejudgement.json")) as file:
            record = json.load(file)
        for submission, run in ((4, "nk"), (2, "ben")):
            own = self.result("submissions", submission, "evaluations/1")
            record["evaluations"].insert(0, {"submission": submission, "evaluation": 1, "id": own["id"], "run": run})
        self.write("results/rejudgements/1/rejudgement.json", json.dumps(record))
        done = self.json("rejudge", "results", "--set", "1", "--judge", "--unsafe")
        self.assertEqual([(e["submission"], e["new"] is not None, e.get("left_out")) for e in done["evaluations"]],
                         [(2, False, "its files are gone, and it has no recording"),
                          (4, False, "its files were not to be kept"), (1, True, None), (3, True, None)])
        self.assertIn("4 nk: its files were not to be kept; left out", self.said)
        # What can be judged after all is missing.
        shutil.copytree(self.path("files"), self.path("results/submissions/2/files"))
        _, err = self.run_kjudge("rejudge", "results", "--set", "1", "--apply", status=2)
        self.assertIn("1 of the 4 evaluations of rejudgement 1 are not judged again yet", err)
        shutil.rmtree(self.path("results/submissions/2/files"))
        out, err = self.run_kjudge("rejudge", "results", "--set", "1", "--apply")
        self.assertIn("2 ben: its files are gone, and it has no recording; its old result counts on", err)
        self.assertRegex(out, r"(?m)^4 +nk +unverified|^4 +nk .*left out")
        self.assertEqual([self.evaluations(n) for n in (1, 2, 3, 4)], [["1", "2"], ["1"], ["1", "2"], ["1"]])

    def test_other_files_than_were_handed_in_are_not_judged(self):
        self.judge(ada=_kjudge.RIGHT)
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "to see")
        os.remove(self.path("results/submissions/1/files/submission.py"))
        self.write("results/submissions/1/files/submission.py", "raise ValueError('no')\n")
        _, err = self.run_kjudge("rejudge", "results", "--set", "1", "--judge", "--from-files", "--unsafe", status=5)
        self.assertIn("1 ada: its files are not what was handed in", err)
        self.run_kjudge("rejudge", "results", "--set", "1", "--judge")

    def test_copies_are_made_again_once(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT, cyd=_kjudge.RIGHT + "# cyd\n")
        self.run_kjudge("rejudge", "results", "--challenge", "softmax", "--reason", "the fan was off")
        done = self.json("rejudge", "results", "--set", "1", "--judge", "--unsafe")
        ids = [self.result("rejudgements/1/evaluations", n)["id"] for n in (1, 2, 3)]
        self.assertEqual(ids[0], ids[1])
        self.assertEqual(len(set(ids)), 2)
        self.assertIn("2 ben: was judged again as 1, which has the same files", self.said)
        self.assertEqual([e["new"]["verdict"] for e in done["evaluations"]], ["accepted"] * 3)
        self.run_kjudge("rejudge", "results", "--set", "1", "--apply")
        self.assertEqual([self.result("submissions", n, "evaluations/2")["id"] for n in (1, 2, 3)], ids)
        self.assert_whole()

    def test_a_set_is_applied_as_a_whole(self):
        self.judge(ada=_kjudge.RIGHT)
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "to see")
        self.run_kjudge("rejudge", "results", "--set", "1", "--judge", "--challenge", self.challenge)
        for more in (["--submission", "1"], ["--run", "ada"], ["--reason", "x"]):
            _, err = self.run_kjudge("rejudge", "results", "--set", "1", "--apply", *more, status=2)
            self.assertIn("--set is about all of a set", err)
        self.assertEqual(self.evaluations(1), ["1"])

    def test_an_older_set_does_not_replace_a_newer_one(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        self.run_kjudge("rejudge", "results", "--challenge", "softmax", "--reason", "the fan was off")
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "the fan is on")
        for number in ("1", "2"):
            self.run_kjudge("rejudge", "results", "--set", number, "--judge")
        self.made_earlier("rejudgements/1/evaluations/1")
        self.run_kjudge("rejudge", "results", "--set", "2", "--apply")
        _, err = self.run_kjudge("rejudge", "results", "--set", "1", "--apply")
        self.assertIn("1 ada: its evaluation 2 was judged later, and counts on", err)
        self.assertEqual([self.evaluations(n) for n in (1, 2)], [["1", "2"], ["1", "2"]])
        self.assertEqual(self.result("submissions/1/evaluations/2"), self.result("rejudgements/2/evaluations/1"))

    def test_what_a_clock_that_was_ahead_says_is_no_newer_than_what_replaces_it(self):
        self.judge(ada=_kjudge.RIGHT)
        result = self.result("submissions/1/evaluations/1")
        os.remove(self.path("results/submissions/1/evaluations/1/result.json"))
        self.write("results/submissions/1/evaluations/1/result.json",
                   json.dumps(dict(result, started="2099-01-01T00:00:00Z")))
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "its clock")
        for action in ("--judge", "--apply"):
            _, err = self.run_kjudge("rejudge", "results", "--set", "1", action)
        self.assertEqual(self.evaluations(1), ["1", "2"], err)

    def test_what_is_judged_at_once_after_an_invalidation_counts(self):
        self.judge(ada=_kjudge.RIGHT)
        self.run_kjudge("invalidate", "results", "--submission", "1", "--reason", "the fan was off")
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "the fan is on")
        for action in ("--judge", "--apply"):
            self.run_kjudge("rejudge", "results", "--set", "1", action)
        found = self.json("rank", "results")
        self.assertEqual([e["evaluation"] for e in found["entries"]], [2])
        self.assertEqual([e["evaluation"] for e in found["invalid"]], [1])


if __name__ == "__main__":
    _kjudge.main()
