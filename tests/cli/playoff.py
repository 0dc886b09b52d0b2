# SPDX-License-Identifier: Apache-2.0
"""kjudge playoff: of every challenge and part of one, by several at the same time, and where somebody cannot take
part."""

import json
import os
import time

import _judge_again
import _kjudge


class Playoff(_judge_again.Case):
    def play_offs(self):
        return sorted(n for n in os.listdir(self.path("results/playoffs")) if not n.startswith("."))

    def test_who_has_no_recording_stands_last(self):
        self.judge(**{run: _kjudge.RIGHT + "# %s\n" % run for run in ("ada", "ben", "cyd")})
        self.tie({1: 1, 2: 1, 3: 1})
        for name in ("bundle.kjb", "kernels.sha256"):
            os.remove(self.path("results/submissions/1/evaluations/2", name))
        done = self.json("playoff", "results", "--unsafe", status=5)
        self.assertIn("1 ada: has no recording; kjudge rejudge judges it again", self.said)
        self.assertEqual(done["play_offs"], [1])
        found = self.json("rank", "results")["entries"]
        self.assertEqual([e["played_off"] for e in found], [True] * 3)
        self.assertEqual((found[2]["run"], found[2]["rank"]), ("ada", 3))
        self.assertEqual(self.json("playoff", "results", "--unsafe")["play_offs"], [])

    def test_every_challenge_and_what_was_asked_of_it(self):
        os.rename(self.challenge, self.path("one-shape"))
        two = [{"arch": "x86_64", "dtype": "float32", "dims": {"rows": 64, "cols": cols}} for cols in (48, 40)]
        self.challenge = self.small_challenge(shapes=two)
        self.write("from/ada.py", _kjudge.RIGHT)
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge, "--variant",
                        "softmax:::64x48", "--unsafe")
        os.rename(self.challenge, self.path("first"))
        tests = [{"arch": "x86_64", "dtype": "float32", "dims": {"rows": 3, "cols": 7}}]
        other = self.small_challenge(name="another", tests=tests)
        self.write("others/ben.py", _kjudge.RIGHT)
        self.run_kjudge("judge", "results", "--from", "others", "--challenge", other, "--unsafe")
        done = self.json("playoff", "results")
        self.assertEqual(sorted(done["judged_again"]), [1, 2])
        again = self.json("playoff", "results")
        self.assertEqual((again["judged_again"], again["play_offs"]), ([], []))
        _, err = self.run_kjudge("playoff", "results", "softmax:::64x48")
        self.assertIn("nothing is to be done", err)

    def test_several_at_the_same_time_store_one_record(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        self.tie({1: 1, 2: 1})
        processes = [self.start("playoff", "results") for _ in range(3)]
        for process in processes:
            _, err = process.communicate()
            self.assertIn(process.returncode, (0, 75), err)
        self.assertEqual(self.play_offs(), ["1"])

    def test_nothing_is_judged_yet(self):
        os.makedirs(self.path("results/submissions"))
        done = self.json("playoff", "results")
        self.assertEqual((done["judged_again"], done["play_offs"]), ([], []))

    def test_an_invalid_play_off_decides_nothing(self):
        self.judge(ada=_kjudge.RIGHT, ben=_kjudge.RIGHT + "# ben\n")
        self.tie({1: 1, 2: 1})
        # Times have whole seconds, and --from below is to take none of the evaluations above.
        while time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) <= self.result("submissions/2/evaluations/1")["started"]:
            time.sleep(0.05)
        self.run_kjudge("playoff", "results")
        with open(self.path("results/playoffs/1/results/1.json")) as file:
            result = json.load(file)
        since = ["--node", result["node"], "--from", result["started"]]
        for selection, play_offs in ((["--evaluation", result["id"]], [1]), (since, [1, 2])):
            made = self.json("invalidate", "results", *selection, "--reason", "the fan was off")
            self.assertEqual([e["play_off"] for e in made["evaluations"]], play_offs)
            self.assertEqual([e.get("played_off", False) for e in self.json("rank", "results")["entries"]], [False] * 2)
            self.assertEqual(self.json("playoff", "results")["play_offs"], [play_offs[-1] + 1])
            self.assertEqual([e.get("played_off", False) for e in self.json("rank", "results")["entries"]], [True] * 2)


if __name__ == "__main__":
    _kjudge.main()
