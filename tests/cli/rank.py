# SPDX-License-Identifier: Apache-2.0
"""kjudge rank: variants, kinds of GPU and versions in tables of their own, history, bars, what does not
count."""

import copy
import hashlib
import json
import os
import re
import shutil

import _kjudge
import _results_directory


class Rank(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.results = _results_directory.Results(self.path("results"))

    def entry(self, run, factor, seed=1, shapes=None, **changes):
        """A submission whose speedups are so many times those of the golden result."""
        result = dict(_results_directory.faster(factor, seed), **changes)
        result["id"] = "%s-%d" % (run, self.results.count)
        for shape, more in (shapes or {}).items():
            for facts in result["shapes"]:
                if facts["name"] == shape:
                    for round_ in facts["rounds"]:
                        for pair in round_["pairs"]:
                            for clocks in pair["submission"]:
                                clocks.update({k: v / more for k, v in clocks.items()})
        return self.results.add(run, run + ".py", result)

    def rank(self, *arguments, **more):
        out, self.said = self.run_kjudge("rank", "results", *arguments, "--json", **more)
        return json.loads(out)

    def runs(self, *arguments):
        return [e["run"] for e in self.rank(*arguments)["entries"]]

    def keep_challenge(self, **changes):
        """As judge keeps it; returns its hash."""
        folder = self.path("results", "challenges", "softmax", "1")
        shutil.copytree(os.path.join(_kjudge.ROOT, "packages", "softmax"), folder)
        with open(os.path.join(folder, "challenge.json")) as file:
            challenge = json.load(file)
        challenge["tests"] = []
        challenge["shapes"] = [
            {"name": "4096x1000", "arch": "sm_*", "dtype": "float32", "dims": {"rows": 4096, "cols": 1000}},
            {"name": "17x3", "arch": "sm_*", "dtype": "bfloat16", "dims": {"rows": 17, "cols": 3}}]
        challenge.update(changes)
        with open(os.path.join(folder, "challenge.json"), "w") as file:
            json.dump(challenge, file)
        lines = ""  # kjudge-challenge(5) says how its hash is made
        names = sorted(os.path.relpath(os.path.join(top, name), folder)
                       for top, _, files in os.walk(folder) for name in files)
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                lines += "%s  %s\n" % (hashlib.sha256(file.read()).hexdigest(), name)
        return hashlib.sha256(lines.encode()).hexdigest()

    def test_each_kind_of_gpu_version_and_method_has_its_table(self):
        self.entry("ada", 1.0)
        self.entry("ben", 2.0, device="NVIDIA H100 80GB HBM3 GPU-1")
        self.entry("cyd", 3.0, device="NVIDIA H100 PCIe GPU-2")
        self.entry("dan", 4.0, challenge_version=2)
        self.entry("eve", 1.5)
        found = self.rank()
        self.assertEqual([e["run"] for e in found["entries"]], ["eve", "ada"])  # of the newest
        self.assertEqual((found["device_kind"], found["challenge_version"]), ("NVIDIA H200", 1))
        self.assertEqual(self.runs("softmax@2"), ["dan"])
        self.assertEqual(self.runs("softmax::h100-pcie"), ["cyd"])
        self.assertEqual(self.runs("softmax@1::H100 80GB HBM3"), ["ben"])
        _, err = self.run_kjudge("rank", "results", "softmax::h100", status=2)
        self.assertIn("several kinds of GPU", err)
        self.assertIn("h100-80gb-hbm3, h100-pcie", err)
        _, err = self.run_kjudge("rank", "results", "softmax")
        self.assertIn("3 submissions were judged only on other terms", err)
        self.assertIn("softmax@1::h100-pcie (method 1)", err)
        for wrong in ("", ":float32", "softmax@x", "softmax:a:b:c:d"):
            self.run_kjudge("rank", "results", wrong, status=2)

    def test_what_nothing_here_is_for_is_a_usage_error(self):
        os.makedirs(self.path("results", "submissions"))
        self.run_kjudge("rank", "results", "softmax")  # of a directory with nothing in it
        sha256 = self.keep_challenge()
        self.assertEqual(self.rank("softmax")["entries"], [])  # kept, and nothing judged yet
        self.entry("ada", 1.0, challenge_sha256=sha256)
        for wrong, there in (("gemm", "there is softmax"), ("softmax@3", "there is 1"),
                             ("softmax::b200", "it was on h200")):
            _, err = self.run_kjudge("rank", "results", wrong, status=2)
            self.assertIn(there, err)
        bar = ("bar", "add", "results", "--name", "x", "--source", "s", "--variant")
        for wrong in (("gemm", "--speedup", "2"), ("softmax@3", "--speedup", "2"),
                      ("softmax:int8", "--speedup", "2"), ("softmax:::1x1", "--speedup", "2"),
                      ("softmax", "--times", "1x1=2")):
            self.run_kjudge(*bar, *wrong, status=2)
        self.assertEqual(self.rank()["bars"], [])

    def test_a_run_is_one_however_its_letters_are_written(self):
        self.entry("ada2", 1.0)
        self.assertEqual(self.rank("--history", "ADA2")["run"], "ada2")
        out, _ = self.run_kjudge("invalidate", "results", "--run", "Ada2", "--preview", "--json")
        self.assertEqual(len(json.loads(out)["evaluations"]), 1)
        out, _ = self.run_kjudge("export", "results", "--run", "ADA2", "-o", self.path("e.zst"), "--json")
        self.assertEqual(json.loads(out)["submissions"], 1)

    def test_there_is_no_such_day(self):
        self.entry("ada", 1.0)
        for wrong in ("2026-13-45", "2026-02-29", "2026-11-30T24:00:00Z", "2026-11-30T12:60:00Z"):
            self.run_kjudge("invalidate", "results", "--from", wrong, "--preview", status=2)
        self.run_kjudge("invalidate", "results", "--from", "2024-02-29", "--preview")

    def test_dtypes_and_shapes(self):
        sha256 = self.keep_challenge(target_us=1e6, bounty="a mug")
        self.entry("ada", 1.0, shapes={"17x3": 4.0}, challenge_sha256=sha256)
        self.entry("ben", 1.5, seed=2, challenge_sha256=sha256)
        whole = self.rank()
        self.assertEqual([e["run"] for e in whole["entries"]], ["ada", "ben"])
        self.assertEqual(whole["bounty"], "a mug")
        self.assertTrue(all(e["target_met"] for e in whole["entries"]))
        self.assertEqual(self.runs("softmax:float32"), ["ben", "ada"])
        self.assertEqual(self.runs("softmax:bfloat16"), ["ada", "ben"])
        by_shape = self.rank("softmax:::4096x1000")
        self.assertEqual([e["run"] for e in by_shape["entries"]], ["ben", "ada"])
        # The whole is the geometric mean of its parts.
        part = {v: {e["run"]: e["speedup"] for e in self.rank(v)["entries"]}
                for v in ("softmax:float32", "softmax:bfloat16")}
        for e in whole["entries"]:
            self.assertAlmostEqual(e["speedup"] ** 2, part["softmax:float32"][e["run"]] * part["softmax:bfloat16"][e["run"]])
        for wrong, there in (("softmax:int8", "float32"), ("softmax:float32::17x3", "4096x1000")):
            _, err = self.run_kjudge("rank", "results", wrong, status=2)
            self.assertIn(there, err)

    def test_of_two_of_one_second_pages_take_the_same_for_the_newest(self):
        for version in (1, 2):
            path = os.path.join(self.entry("ada", 1.0, challenge_version=version), "evaluations/1/result.json")
            with open(path) as file:
                result = json.load(file)
            _results_directory.write_json(path, dict(result, started="2026-11-30T12:00:00Z"))
        self.assertEqual(self.rank()["challenge_version"], 2)
        self.run_kjudge("pages", "results", "-o", "site")
        with open(self.path("site/index.html")) as file:
            boards = re.findall(r'href="leaderboard/softmax-(\d)', file.read())
        self.assertEqual(boards, ["2", "1"])

    def test_history_of_a_run(self):
        self.entry("ada", 1.0)
        self.entry("ada", 3.0)
        self.entry("ben", 9.0)
        self.entry("ada", 2.0)
        found = self.rank("--history", "ada")
        self.assertEqual(found["format"], "kjudge-history/1")
        self.assertEqual([e["submission"] for e in found["evaluations"]], [1, 2, 4])
        out, _ = self.run_kjudge("rank", "results", "--history", "ada")
        self.assertEqual([line.split()[-1] for line in out.splitlines()[1:]], ["yes", "yes", "-"])
        self.run_kjudge("rank", "results", "--history", "nobody", status=2)

    def test_who_only_a_play_off_puts_behind_is_behind_by_nothing(self):
        self.entry("ada", 1.0)
        self.entry("ben", 0.999)
        self.assertGreater(self.rank()["entries"][1]["behind"], 0)
        ada, ben = ({"submission": number, "evaluation": 1, "id": "%s-%d" % (run, number - 1), "run": run}
                    for number, run in ((1, "ada"), (2, "ben")))
        self.write("results/playoffs/1/playoff.json", json.dumps(
            {"format": "kjudge-playoff/1", "best": ada, "others": [ben], "made": "2026-11-30T12:00:00Z"}))
        self.write("results/playoffs/1/results/1.json", json.dumps(_results_directory.faster(1.5, 1)))
        found = self.rank()["entries"]
        self.assertEqual([(e["run"], e["played_off"], "behind" in e) for e in found],
                         [("ben", True, False), ("ada", True, False)])
        out, _ = self.run_kjudge("rank", "results")
        self.assertRegex(out, r"(?m)^\d +ada +1 +\S+ +\[\S+ \S+\] +- ")
        self.run_kjudge("pages", "results", "-o", "site")
        board, = os.listdir(self.path("site/leaderboard"))
        with open(self.path("site/leaderboard", board)) as file:
            self.assertNotRegex(file.read(), r">[-\u2212]\d+\.\d %<")

    def test_label_and_code(self):
        sha256 = self.keep_challenge(publish_code="licensed")
        self.entry("ada", 1.0, challenge_sha256=sha256)
        self.write("results/submissions/1/files/submission.py",
                   "# kjudge_label: A model, 3 attempts\n# kjudge_license: MIT\n" + _kjudge.RIGHT)
        self.entry("ben", 1.5, challenge_sha256=sha256)
        self.write("results/submissions/2/files/submission.py", _kjudge.RIGHT)
        found = {e["run"]: e for e in self.rank()["entries"]}
        self.assertEqual(found["ada"]["label"], "A model, 3 attempts")
        self.assertEqual((found["ada"]["code"], found["ada"]["license"]), ("submissions/1/files", "MIT"))
        self.assertNotIn("code", found["ben"])
        out, _ = self.run_kjudge("rank", "results")
        self.assertRegex(out, r"(?m)^2 +ada .*A model, 3 attempts +submissions/1/files$")
        self.run_kjudge("pages", "results", "-o", "site", "--challenge",
                        self.path("results/challenges/softmax/1"))
        self.assertTrue(os.path.exists(self.path("site/code/1.html")))
        self.assertFalse(os.path.exists(self.path("site/code/2.html")))

    def test_a_bar_needs_numbers(self):
        self.entry("ada", 1.0)
        for numbers in ("--speedup=nan", "--speedup=inf", "--speedup=-1", "--times=17x3=inf", "--times=17x3=nan"):
            with self.subTest(numbers):
                self.run_kjudge("bar", "add", "results", "--name", "x", "--variant", "softmax", numbers,
                                "--source", "s", status=2)

    def test_bars_are_shown_and_never_ranked(self):
        self.entry("ada", 1.0)
        speedup = self.rank()["entries"][0]["speedup"]
        self.run_kjudge("bar", "add", "results", "--name", "vendor", "--variant", "softmax", "--speedup",
                        "10000", "--source", "https://example.org/paper", "--date", "2026-05")
        out, _ = self.run_kjudge("bar", "add", "results", "--name", "model", "--variant", "softmax@1::h200",
                                 "--times", "4096x1000=0.5,17x3=1.5", "--measured",
                                 "--source", "bench.py", "--json")
        self.assertEqual(json.loads(out)["number"], 2)
        self.run_kjudge("bar", "add", "results", "--name", "elsewhere", "--variant", "softmax::h100",
                        "--speedup", "1", "--source", "x")
        found = self.rank()
        self.assertEqual([(b["name"], b["basis"]) for b in found["bars"]],
                         [("vendor", "claimed"), ("model", "measured")])
        self.assertEqual([(e["rank"], e["run"]) for e in found["entries"]], [(1, "ada")])
        baseline = found["bars"][1]["speedup"]
        self.assertGreater(baseline, 0)
        out, _ = self.run_kjudge("rank", "results")
        self.assertRegex(out.splitlines()[1], r"^bar, claimed +vendor +- +10000\.000x")
        self.run_kjudge("pages", "results", "-o", "site")
        board = [n for n in os.listdir(self.path("site/leaderboard"))]
        with open(self.path("site/leaderboard", board[0])) as file:
            page = file.read()
        self.assertIn("claimed, not verified", page)
        self.assertIn("measured by the organizer", page)
        self.run_kjudge("bar", "remove", "results", "--number", "1")
        self.assertEqual([b["name"] for b in self.rank()["bars"]], ["model"])
        self.assertTrue(os.path.exists(self.path("results/bars/1/bar.json")))
        bars = json.loads(self.run_kjudge("bar", "list", "results", "--json")[0])["bars"]
        self.assertEqual([b["number"] for b in bars], [2, 3])
        for wrong in (["remove", "results", "--number", "1"], ["remove", "results"], ["add", "results"],
                      ["add", "results", "--name", "x", "--variant", "softmax", "--source", "s"],
                      ["add", "results", "--name", "x", "--variant", "softmax", "--source", "s", "--times", "1.5"]):
            self.run_kjudge("bar", *wrong, status=2)
        self.assertEqual(self.rank()["entries"][0]["speedup"], speedup)
        self.write("results/bars/2/bar.json", "{")
        out, _ = self.run_kjudge("fsck", "results", "--json", status=3)
        self.assertIn("results/bars/2/bar.json", [f["path"] for f in json.loads(out)["findings"]])
        self.assertEqual(self.rank(status=3)["bars"], [])
        self.assertIn("bars/2/bar.json", self.said)

    def test_what_is_invalid_does_not_count_until_that_is_taken_back(self):
        self.entry("ada", 2.0)
        self.entry("ben", 1.0, node="hot")
        self.entry("ada", 3.0, node="hot")
        self.entry("cyd", 1.0, node="hot")
        before = self.rank()
        out, err = self.run_kjudge("invalidate", "results", "--node", "hot", "--from", "2026-11-02", "--preview", "--json")
        self.assertEqual([e["submission"] for e in json.loads(out)["evaluations"]], [2, 3, 4])
        self.assertFalse(os.path.exists(self.path("results/invalidations")))
        # By a run among them only.
        self.run_kjudge("invalidate", "results", "--node", "hot", "--run", "ada", "--reason", "its fan was off")
        found = self.rank()
        self.assertEqual([(e["run"], e["submission"]) for e in found["entries"]], [("ada", "1"), ("ben", "2"), ("cyd", "4")])
        self.assertEqual([(i["submission"], i["reason"]) for i in found["invalid"]], [(3, "its fan was off")])
        _, err = self.run_kjudge("rank", "results")
        self.assertIn("1 evaluation does not count: its fan was off (submission 3)", err)
        self.run_kjudge("pages", "results", "-o", "site")
        with open(self.path("site/evaluation/3.html")) as file:
            self.assertIn("its fan was off", file.read())
        out, _ = self.run_kjudge("show", "3", "--results", "results")
        self.assertTrue(out.startswith("this evaluation does not count: its fan was off\n"), out)
        out, err = self.run_kjudge("show", "3", "--results", "results", "--json")
        self.assertEqual((json.loads(out)["node"], "its fan was off" in err), ("hot", True))
        self.assertNotIn("count", self.run_kjudge("show", "2", "--results", "results")[0])
        history = self.rank("--history", "ada")["evaluations"]
        self.assertEqual([e.get("invalid") for e in history], [None, ["its fan was off"]])
        # What is judged later counts, though the node is the same.
        later = self.entry("ada", 4.0, node="hot")
        path = os.path.join(later, "evaluations", "1", "result.json")
        with open(path) as file:
            result = json.load(file)
        result["started"] = "2099-01-01T00:00:00Z"
        with open(path, "w") as file:
            json.dump(result, file)
        self.assertEqual(self.rank()["entries"][0]["submission"], "5")
        shutil.rmtree(later)
        listed = json.loads(self.run_kjudge("invalidate", "results", "--list", "--json")[0])["invalidations"]
        self.assertEqual([(i["number"], i["reason"]) for i in listed], [(1, "its fan was off")])
        for more in (["--preview"], ["--run", "ada"], ["--reason", "x"]):
            _, err = self.run_kjudge("invalidate", "results", "--undo", "1", *more, status=2)
            self.assertIn("goes alone", err)
        self.run_kjudge("invalidate", "results", "--undo", "1")
        self.assertEqual(self.rank(), before)
        self.assertTrue(os.path.exists(self.path("results/invalidations/1/invalidation.json")))
        for wrong in (["--undo", "1"], ["--reason", "all"], ["--run", "ada"], ["--run", "nobody", "--reason", "x"],
                      ["--run", "ada", "--reason", "x", "--from", "yesterday"]):
            self.run_kjudge("invalidate", "results", *wrong, status=2)

    def test_what_a_clock_that_was_ahead_says_can_be_invalidated(self):
        self.entry("ada", 2.0)
        ahead = os.path.join(self.entry("ben", 3.0, node="ahead"), "evaluations", "1", "result.json")
        with open(ahead) as file:
            result = json.load(file)
        with open(ahead, "w") as file:
            json.dump(dict(result, started="2099-01-01T00:00:00Z"), file)
        _, err = self.run_kjudge("invalidate", "results", "--node", "ahead", "--reason", "its clock", status=2)
        self.assertIn("submission 2 of ben: its evaluation 1 began at 2099-01-01T00:00:00Z, which is to come", err)
        name = re.search(r"--evaluation (\S+) is about it", err).group(1)
        _, err = self.run_kjudge("invalidate", "results", "--evaluation", name, "--reason", "its clock")
        self.assertNotIn("to come", err)
        found = self.rank()
        self.assertEqual([e["run"] for e in found["entries"]], ["ada"])
        self.assertEqual([(i["submission"], i["reason"]) for i in found["invalid"]], [(2, "its clock")])

    def test_the_index_is_never_the_truth(self):
        self.entry("ada", 1.0)
        self.entry("ben", 2.0)
        first = self.rank()
        index = self.path("results/scores.index")
        with open(index, "rb") as file:
            kept = file.read()
        for harm in (b"", b"nonsense", kept[:100], kept[:-1], kept[:40] + bytes([kept[40] ^ 1]) + kept[41:]):
            with open(index, "wb") as file:
                file.write(harm)
            self.assertEqual(self.rank(), first)
        os.remove(index)
        self.assertEqual(self.rank(), first)
        with open(index, "rb") as file:
            self.assertEqual(file.read(), kept)
        # A file that changed is read again.
        path = self.path("results/submissions/1/evaluations/1/result.json")
        with open(path) as file:
            result = json.load(file)
        result["verdict"] = "refused"
        with open(path, "w") as file:
            json.dump(result, file)
        self.assertEqual(self.runs(), ["ben"])
        shutil.rmtree(self.path("results/submissions/2"))
        self.assertEqual(self.runs(), [])
        self.entry("cyd", 1.0)
        self.assertEqual(self.runs(), ["cyd"])

    def test_a_leader_that_was_judged_once_is_pending(self):
        def add(run, *factors):
            results = []
            for i, factor in enumerate(factors):
                results.append(dict(copy.deepcopy(_results_directory.faster(factor, i)), id="%s-%d" % (run, i)))
            self.results.add(run, run + ".py", *results)
        add("ada", 1.0, 1.1)
        add("ben", 2.0)
        add("cyd", 0.5)
        found = self.rank()
        self.assertEqual([(e["rank"], e["run"], e["judged"]) for e in found["entries"]], [(1, "ada", 2), (2, "cyd", 1)])
        self.assertEqual([e["run"] for e in found["pending"]], ["ben"])
        out, err = self.run_kjudge("rank", "results")
        self.assertRegex(out, r"(?m)^pending +ben ")
        self.assertIn("1 run is pending", err)
        self.run_kjudge("pages", "results", "-o", "site")
        board = os.listdir(self.path("site/leaderboard"))[0]
        with open(self.path("site/leaderboard", board)) as file:
            self.assertIn("Faster than the first, and judged only once", file.read())
        # Judged again: the last of its evaluations counts, not the luckier one.
        shutil.rmtree(self.path("results/submissions/2"))
        self.results.count = 1
        add("ben", 2.0, 0.9)
        found = self.rank()
        self.assertEqual([(e["run"], e["evaluation"]) for e in found["entries"]], [("ada", 2), ("ben", 2), ("cyd", 1)])
        self.assertEqual(found["pending"], [])


if __name__ == "__main__":
    _kjudge.main()
