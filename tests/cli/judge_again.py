# SPDX-License-Identifier: Apache-2.0
"""kjudge rejudge and kjudge playoff: judged again beside what there is, on fresh hidden inputs; nothing is
lost and nothing done twice, however they are killed."""

import json
import os
import shutil
import subprocess
import time

import _judge_again
import _kjudge


class JudgeAgain(_judge_again.Case):
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
        self.environment["PATH"] = self.path("nowhere")  # no Python, and no sandbox: recordings need none
        for action in (["--judge"], ["--apply"]):
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

    def exported(self, *arguments):
        """How many play-offs an export has."""
        self.run_kjudge("export", "results", "-o", "out.zst", *arguments)
        lines = subprocess.run(["zstd", "-dc", self.path("out.zst")], stdout=subprocess.PIPE, check=True).stdout
        return sum(json.loads(line)["kind"] == "playoff" for line in lines.splitlines())

    def test_every_group_is_played_off(self):
        self.judge(**{run: _kjudge.RIGHT + "# %s\n" % run for run in ("ada", "ben", "cyd", "dan")})
        self.tie({1: 1, 2: 1, 3: 3, 4: 3})
        self.assertEqual([(e["rank"], e["judged"]) for e in self.json("rank", "results")["entries"]],
                         [(1, 2), (1, 2), (3, 2), (3, 2)])
        # Recordings are there, so nothing of theirs runs, and there need be no sandbox.
        done = self.json("playoff", "results", PATH=self.path("nowhere"))
        self.assertEqual((done["judged_again"], done["play_offs"]), ([], [1, 2]))
        found = self.json("rank", "results")["entries"]
        self.assertEqual([e["played_off"] for e in found], [True] * 4)
        self.assertEqual({e["run"] for e in found[:2]}, {"ada", "ben"})
        self.assertEqual(self.json("playoff", "results", PATH=self.path("nowhere"))["play_offs"], [])
        # Of some evaluations, those that are among them alone.
        self.assertEqual([self.exported(*of) for of in ((), ("--challenge", "softmax"), ("--challenge", "nope"),
                                                        ("--run", "ada"), ("--submission", "3"))], [2, 2, 0, 0, 0])
        self.assert_whole()

    def test_a_play_off_needs_recordings(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        self.tie({1: 1, 2: 1}, bundles=False)
        found = self.json("rank", "results")
        self.assertEqual([(e["rank"], e["judged"]) for e in found["entries"]], [(1, 2), (1, 2)])
        _, err = self.run_kjudge("playoff", "results", "--unsafe", status=5)
        self.assertIn("has no recording; kjudge rejudge judges it again", err)
        _, err = self.run_kjudge("playoff", "results", "other", "--unsafe", status=2)
        self.assertIn("other", err)
        # Pruned, they are captured again, if what that launches is what was judged.
        for submission in (1, 2):
            evaluation = self.path("results/submissions/%d/evaluations/2" % submission)
            shutil.copy(os.path.join(evaluation, "../1/kernels.sha256"), evaluation)
            os.utime(os.path.join(evaluation, "result.json"))  # so that it is read again
            with open(os.path.join(evaluation, "pruned.json"), "w") as file:
                json.dump({"format": "kjudge-pruned/1", "bytes": 1, "pruned": "2025-01-31T12:00:00Z", "rule": "best",
                           "sha256": self.result("submissions", submission, "evaluations/2")["bundle_sha256"]}, file)
        self.assert_whole()
        _, err = self.run_kjudge("playoff", "results", PATH=self.path("nowhere"), status=5)
        self.assertIn("sandbox", err)
        shutil.copytree(self.path("results"), self.path("other"))
        self.write("other/submissions/2/evaluations/2/kernels.sha256", "0" * 64 + "\n")
        _, err = self.run_kjudge("playoff", "other", "--unsafe", status=5)
        self.assertIn("2 ben: has no recording, and captured again it launches other kernels", err)
        self.assertEqual(self.json("playoff", "results", "--unsafe")["play_offs"], [1])
        self.assertEqual([n for n in os.listdir(self.path("results/submissions/2/evaluations/2")) if "bundle" in n], [])
        self.assert_nothing_left()

    def test_recordings_are_kept_by_rule_and_made_again(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n", cyd="raise ValueError('no')\n")
        # A second submission of each: the one that is not the best loses its recording.
        for run in ("ada", "ben"):
            self.write("from/%s.py" % run, _kjudge.RIGHT + "# %s again\n" % run)
        _, err = self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe",
                                 "--keep-bundles", "best")
        self.assertRegex(err, r"2 recordings pruned, \d+ KiB")
        pruned = [n for n in (1, 2, 4, 5) if
                  os.path.exists(self.path("results/submissions/%d/evaluations/1/pruned.json" % n))]
        self.assertEqual(len({(n - 1) % 3 for n in pruned}), 2, pruned)
        kept = {int(e["submission"]) for e in self.json("rank", "results")["entries"]}
        self.assertEqual(kept, {1, 2, 4, 5} - set(pruned))
        self.assert_whole()
        # The same files are answered with the mark too.
        shutil.copy(self.path("results/submissions/%d/files/submission.py" % pruned[0]), self.path("from/eve.py"))
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe")
        self.assertTrue(os.path.exists(self.path("results/submissions/6/evaluations/1/pruned.json")))
        self.assert_whole()
        self.run_kjudge("rejudge", "results", "--submission", str(pruned[0]), "--reason", "to see")
        _, err = self.run_kjudge("rejudge", "results", "--set", "1", "--judge", "--unsafe")
        self.assertIn("captured again from its files", err)
        self.run_kjudge("rejudge", "results", "--set", "1", "--apply")
        self.assertTrue(os.path.exists(self.path("results/submissions/%d/evaluations/2/bundle.kjb" % pruned[0])))
        self.assert_whole()
        self.run_kjudge("judge", "results", "--challenge", self.challenge, "--keep-bundles", "some", status=2)


if __name__ == "__main__":
    _kjudge.main()
