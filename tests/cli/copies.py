# SPDX-License-Identifier: Apache-2.0
"""The same files handed in again: they are judged once, and what does not count, or is not there any more, does
not come back through them."""

import os

import _judge_again
import _kjudge


class Copies(_judge_again.Case):
    def submit(self, file, run, *options):
        self.run_kjudge("submit", file, "--run", run, "--challenge", "softmax", "--results", "results", "--no-wait",
                        *options)

    def judge_waiting(self):
        return self.run_kjudge("judge", "results", "--challenge", self.challenge, "--unsafe")[1]

    def id_of(self, submission, evaluation=1):
        return self.result("submissions", submission, "evaluations", evaluation)["id"]

    def test_what_was_not_kept_answers_nobody_who_keeps(self):
        self.judge()
        self.write("s.py", _kjudge.RIGHT)
        self.submit("s.py", "nk", "--no-keep")
        self.judge_waiting()
        self.submit("s.py", "ada")
        self.assertNotIn("same files", self.judge_waiting())
        self.assertTrue(os.path.exists(self.path("results/submissions/2/evaluations/1/bundle.kjb")))
        self.assert_whole()
        self.submit("s.py", "nobody", "--no-keep")
        self.assertRegex(self.judge_waiting(), "3 nobody: same files as [12]: accepted")
        self.assert_whole()

    def test_a_lost_recording_answers_nobody(self):
        self.judge(ada=_kjudge.RIGHT)
        os.remove(self.path("results/submissions/1/evaluations/1/bundle.kjb"))
        self.judge(ben=_kjudge.RIGHT)
        self.assertNotEqual(self.id_of(2), self.id_of(1))
        self.assertTrue(os.path.exists(self.path("results/submissions/2/evaluations/1/bundle.kjb")))

    def test_an_invalid_measurement_does_not_come_back(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        self.run_kjudge("invalidate", "results", "--submission", "1", "--reason", "the fan was off")
        self.judge(cyd=_kjudge.RIGHT)
        self.assertNotEqual(self.id_of(3), self.id_of(1))
        node = self.result("submissions/2/evaluations/1")["node"]
        self.run_kjudge("invalidate", "results", "--node", node, "--reason", "the fan was off")
        self.judge(dan=_kjudge.RIGHT + "# ben\n")
        self.assertEqual([e["run"] for e in self.json("rank", "results")["entries"]], ["dan"])

    def test_a_second_judging_is_that_of_all_copies(self):
        self.judge(ada=_kjudge.RIGHT)
        self.judge(ben=_kjudge.RIGHT)
        self.assertEqual(self.id_of(1), self.id_of(2))
        self.made_earlier("submissions/1/evaluations/1", "submissions/2/evaluations/1")
        self.assertEqual(self.json("playoff", "results")["judged_again"], [1])
        self.assertIn("2 ben: was judged again as 1, which has the same files", self.said)
        self.assertEqual(self.id_of(1, 2), self.id_of(2, 2))
        found = self.json("rank", "results")["entries"]
        self.assertEqual([(e["run"], e["rank"], e["judged"], e["evaluation"]) for e in found],
                         [("ada", 1, 2, 2), ("ben", 1, 2, 2)])
        self.assert_whole()
        # Copies are not played off against each other.
        again = self.json("playoff", "results")
        self.assertEqual((again["judged_again"], again["play_offs"]), ([], []))


if __name__ == "__main__":
    _kjudge.main()
