# SPDX-License-Identifier: Apache-2.0
"""kjudge rejudge and kjudge playoff: judged again beside what there is, on fresh hidden inputs; nothing is
lost and nothing done twice, however they are killed."""

import json
import os
import shutil
import time

import _kjudge


class JudgeAgain(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()

    def judge(self, **runs):
        for run, code in runs.items():
            self.write("from/%s.py" % run, code)
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe")

    def json(self, *arguments, **more):
        out, self.said = self.run_kjudge(*arguments, "--json", **more)
        return json.loads(out)

    def result(self, *parts):
        with open(self.path("results", *map(str, parts), "result.json")) as file:
            return json.load(file)

    def evaluations(self, submission):
        return sorted(n for n in os.listdir(self.path("results/submissions/%d/evaluations" % submission))
                      if not n.startswith("."))

    def assert_whole(self):
        out, _ = self.run_kjudge("fsck", "results")
        self.assertEqual(out, "")

    def test_a_set_is_judged_compared_and_applied(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n", cyd="raise ValueError('no')\n")
        before = self.json("rank", "results")
        made = self.json("rejudge", "results", "--challenge", "softmax", "--reason", "the fan was off")
        self.assertEqual([(e["submission"], e["old"]["verdict"], e["new"]) for e in made["evaluations"]],
                         [(1, "accepted", None), (2, "accepted", None), (3, "runtime_error", None)])
        self.run_kjudge("rejudge", "results", "--set", "1", "--apply", status=2)
        # The files are not needed where there is a recording, and no Python of theirs runs.
        shutil.move(self.path("results/submissions/2/files"), self.path("files"))
        done = self.json("rejudge", "results", "--set", "1", "--judge", "--unsafe")
        shutil.move(self.path("files"), self.path("results/submissions/2/files"))
        self.assertEqual([e["new"]["verdict"] for e in done["evaluations"]], ["accepted", "accepted", "runtime_error"])
        self.assertIn("3 cyd: runtime_error", self.said)
        self.assertEqual(self.json("rank", "results"), before)  # beside the old
        old, new = self.result("submissions/1/evaluations/1"), self.result("rejudgements/1/evaluations/1")
        self.assertNotEqual(old["id"], new["id"])
        for field in ("submission", "submission_sha256", "challenge_sha256", "bundle_sha256"):
            self.assertEqual(old[field], new[field], field)
        self.assert_whole()
        # Again does nothing.
        stamp = os.stat(self.path("results/rejudgements/1/evaluations/1")).st_mtime_ns
        again = self.json("rejudge", "results", "--set", "1", "--judge", "--unsafe")
        self.assertEqual(again, done)
        self.assertEqual(os.stat(self.path("results/rejudgements/1/evaluations/1")).st_mtime_ns, stamp)

        out, _ = self.run_kjudge("rejudge", "results", "--set", "1", "--apply")
        self.assertRegex(out, r"(?m)^1 +ada +[\d.]+x \[.*\] +[\d.]+x \[.*\] +[+-][\d.]+ %$")
        for submission in (1, 2, 3):
            self.assertEqual(self.evaluations(submission), ["1", "2"])
        self.assertEqual(self.result("submissions/1/evaluations/2"), new)
        after = self.json("rank", "results")
        self.assertEqual([e["evaluation"] for e in after["entries"]], [2, 2])
        self.assertEqual({e["judged"] for e in after["entries"]}, {2})
        self.run_kjudge("rejudge", "results", "--set", "1", "--apply")
        self.assertEqual(self.evaluations(1), ["1", "2"])
        self.run_kjudge("rejudge", "results", "--set", "1", "--drop", status=2)
        self.assertEqual(self.json("rejudge", "results", "--list")["sets"][0]["state"], "applied")
        self.assert_whole()
        # Nothing waits.
        _, err = self.run_kjudge("judge", "results", "--challenge", self.challenge, "--unsafe")
        self.assertIn("nothing was waiting", err)

    def test_a_set_is_dropped(self):
        self.judge(ada=_kjudge.RIGHT)
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "to see")
        self.run_kjudge("rejudge", "results", "--set", "1", "--judge", "--from-files", "--unsafe")
        self.run_kjudge("rejudge", "results", "--set", "1", "--drop")
        for action in ("--apply", "--judge"):
            self.run_kjudge("rejudge", "results", "--set", "1", action, status=2)
        self.assertEqual(self.evaluations(1), ["1"])
        self.assertTrue(os.path.exists(self.path("results/rejudgements/1/evaluations/1/result.json")))
        self.assert_whole()
        self.write("results/rejudgements/1/evaluations/1/result.json", "{")
        self.run_kjudge("fsck", "results", status=3)

    def test_usage(self):
        self.judge(ada=_kjudge.RIGHT)
        for wrong in ([], ["--run", "ada"], ["--run", "nobody", "--reason", "x"], ["--judge"], ["--set", "7"],
                      ["--set", "7", "--apply", "--drop"]):
            self.run_kjudge("rejudge", "results", *wrong, status=2)
        self.assertFalse(os.path.exists(self.path("results/rejudgements")))

    def test_a_set_is_killed_at_any_time(self):
        self.judge(**{run: _kjudge.RIGHT + "# %s\n" % run for run in ("ada", "ben", "cyd")})
        self.run_kjudge("rejudge", "results", "--challenge", "softmax", "--reason", "to see")
        start = time.monotonic()
        shutil.copytree(self.path("results"), self.path("copy"))
        self.run_kjudge("rejudge", "copy", "--set", "1", "--judge", "--unsafe")
        whole = time.monotonic() - start
        for action in (["--judge", "--unsafe"], ["--apply"]):
            for kill in range(3):
                process = self.start("rejudge", "results", "--set", "1", *action)
                time.sleep(whole * (kill + 1) / 8 / (1 if action[0] == "--judge" else 20))
                process.kill()
                process.communicate()
            self.wait_for(lambda: not self.processes(), "end of all processes", seconds=10)
            self.run_kjudge("rejudge", "results", "--set", "1", *action)
        for submission in (1, 2, 3):
            self.assertEqual(self.evaluations(submission), ["1", "2"])
        found = json.loads(self.run_kjudge("fsck", "results", "--json")[0])["findings"]
        self.assertEqual([f for f in found if f["kind"] == "damage"], [])

    def test_a_new_leader_is_judged_again_and_ties_are_played_off(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        done = self.json("playoff", "results", "--unsafe")
        self.assertGreaterEqual(len(done["judged_again"]), 1)
        found = self.json("rank", "results")
        self.assertEqual(found["pending"], [])
        first = found["entries"][0]
        self.assertTrue(first["judged"] == 2 or first["played_off"], first)
        first = done["judged_again"][0]
        ids = {self.result("submissions", first, "evaluations", n)["id"] for n in self.evaluations(first)}
        self.assertEqual(len(ids), 2)
        self.assert_whole()
        if done["play_offs"]:  # the same kernels: tied, unless a machine is very unsteady
            with open(self.path("results/playoffs/1/playoff.json")) as file:
                record = json.load(file)
            self.assertEqual(len(record["others"]), 1)
            with open(self.path("results/playoffs/1/results/1.json")) as file:
                result = json.load(file)
            best = self.result("submissions", record["best"]["submission"], "evaluations", record["best"]["evaluation"])
            self.assertEqual(result["baseline_sha256"], best["bundle_sha256"])
            self.assertTrue(all(e["played_off"] for e in found["entries"]))
            ratio = result["score"]["speedup"]
            order = [e["run"] for e in found["entries"]]
            runs = [record["best"]["run"], record["others"][0]["run"]]
            self.assertEqual(order, runs if ratio <= 1 else runs[::-1])
        again = self.json("playoff", "results", "--unsafe")
        self.assertEqual((again["judged_again"], again["play_offs"]), ([], []))
        self.assertEqual(self.json("rank", "results"), found)

    def test_a_play_off_needs_recordings(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        # Made to be tied, and judged twice.
        for submission in (1, 2):
            top = self.path("results/submissions/%d/evaluations" % submission)
            shutil.copytree(os.path.join(top, "1"), os.path.join(top, "2"))
            os.remove(os.path.join(top, "2", "bundle.kjb"))
            result = self.result("submissions/1/evaluations/1")
            result["id"] = "another-%d" % submission
            result["submission_sha256"] = self.result("submissions", submission, "evaluations/1")["submission_sha256"]
            with open(os.path.join(top, "2", "result.json"), "w") as file:
                json.dump(result, file)
        found = self.json("rank", "results")
        self.assertEqual([(e["rank"], e["judged"]) for e in found["entries"]], [(1, 2), (1, 2)])
        _, err = self.run_kjudge("playoff", "results", "--unsafe", status=5)
        self.assertIn("has no recording; kjudge rejudge makes one", err)
        _, err = self.run_kjudge("playoff", "results", "other", "--unsafe", status=2)
        self.assertIn("other", err)


if __name__ == "__main__":
    _kjudge.main()
