# SPDX-License-Identifier: Apache-2.0
"""What is handed in for part of a challenge: only that is judged, and it is ranked among its like; what
asks for another GPU waits for one."""

import json
import os
import subprocess
import unittest
import urllib.parse

import _kjudge
import profile
import serve

# Right for two of the shapes and for their test, and for nothing else.
ONLY_FLOAT32 = _kjudge.RIGHT.replace("def kernel_fn(state, inputs, outputs):\n",
                                     "def kernel_fn(state, inputs, outputs):\n"
                                     "    assert inputs.x.shape[1] in (48, 24, 5), 'no such shape here'\n")


def open_text(path):
    with open(path) as file:
        return file.read()


class Partial(serve.ServeCase):
    def setUp(self):
        super().setUp()
        self.change_challenge(self.make_several_dtypes)
        os.makedirs(self.path("results", "submissions"))

    def make_several_dtypes(self, challenge):
        for tensors in challenge["tensors"].values():
            tensors[0]["dtype"] = "float32"  # so that a dtype is only a name here
        challenge["tensors"]["outputs"][0]["checks"] = [{"kind": "close", "rtol": 4e-5, "atol": 1e-10}]
        challenge["shapes"] = [
            {"name": name, "arch": arch, "dtype": dtype, "dims": {"rows": 64, "cols": cols}}
            for name, arch, dtype, cols in (
                ("wide", "x86_64", "float32", 48), ("narrow", "x86_64", "float32", 24),
                ("half", "x86_64", "float16", 40), ("big", "sm_*", "bfloat16", 96))]
        challenge["tests"] = [
            {"name": "odd", "arch": "x86_64", "dtype": "float32", "dims": {"rows": 3, "cols": 5}},
            {"name": "odd-half", "arch": "x86_64", "dtype": "float16", "dims": {"rows": 2, "cols": 7}}]

    def change_challenge(self, change):
        path = self.path("challenge", "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        change(challenge)
        with open(path, "w") as file:
            json.dump(challenge, file)

    def submit_locally(self, name, run, variant, code=ONLY_FLOAT32, status=0):
        path = self.write(name, code)
        return self.run_kjudge("submit", path, "--run", run, "--challenge", self.challenge + variant, "--results",
                               "results", "--no-wait", status=status)

    def result(self, submission, evaluation=1):
        with open(self.path("results", "submissions", str(submission), "evaluations", str(evaluation),
                            "result.json")) as file:
            return json.load(file)

    def rank(self, *variant):
        out, self.said = self.run_kjudge("rank", "results", *variant, "--json")
        return json.loads(out)

    def runs(self, *variant):
        return [entry["run"] for entry in self.rank(*variant)["entries"]]

    def test_a_dtype_from_upload_to_rank(self):
        token = self.token("Ada")
        server = self.serve()
        self.write("submission.py", ONLY_FLOAT32)
        clients = {}
        for script, run in ((True, "python"), (False, "program")):
            clients[run] = self.client("--run", run, "--challenge", "softmax:float32", "--server", self.url,
                                       token=token, script=script)
            clients[run].stdout.readline()
        self.write("whole.py", _kjudge.RIGHT)
        whole = self.client("whole.py", "--run", "whole", "--challenge", "softmax", "--server", self.url, token=token)
        whole.stdout.readline()
        self.assertIn(b"softmax:float32", self.ask("GET", "/evaluation/1.html")[2])  # while it waits
        self.judge()
        for run, client in clients.items():
            lines = self.finish(client)[0].splitlines()
            self.assertEqual(lines[0], "partial, softmax:float32: accepted")
            self.assertEqual([line.split()[0] for line in lines[2:-2]], ["wide", "narrow", "odd"])
            self.assertRegex(lines[-1], r"^rank: [123] of [123], among those of softmax:float32$")
        self.assertRegex(self.finish(whole)[0].splitlines()[-1], "^rank: 1 of 1$")
        result = self.result(1)
        self.assertEqual((result["variant"], result["verdict"]), ("softmax:float32", "accepted"))
        self.assertEqual([shape["name"] for shape in result["shapes"]], ["wide", "narrow", "odd"])
        self.assertEqual(result["score"]["ranked"], False)
        self.assertNotIn("variant", self.result(3))
        # Ranked where all shapes are there, told elsewhere.
        found = self.rank("softmax")
        self.assertEqual([entry["run"] for entry in found["entries"]], ["whole"])
        self.assertEqual([(one["run"], one["variant"]) for one in found["partial"]],
                         [("python", "softmax:float32"), ("program", "softmax:float32")])
        _, said = self.run_kjudge("rank", "results", "softmax")
        self.assertIn("2 submissions were judged only for softmax:float32, and ranked there: 1, 2", said)
        for variant in ("softmax:float32", "softmax:::wide", "softmax:float32:x86_64:narrow"):
            self.assertEqual(sorted(self.runs(variant)), ["program", "python", "whole"], variant)
        self.assertEqual(self.runs("softmax:float16"), ["whole"])
        # The same on pages and in the interface.
        boards = self.ask_json("GET", "/api/leaderboard/softmax")["boards"]
        runs = {board.get("dtype"): [row["run"] for row in board["rows"]] for board in boards}
        self.assertEqual({dtype: len(names) for dtype, names in runs.items()}, {None: 1, "float32": 3, "float16": 1})
        all_of_it = next(board for board in boards if "dtype" not in board)
        self.assertEqual({row["variant"] for row in all_of_it["unranked"]}, {"softmax:float32"})
        for page in (all_of_it["url"], self.url + "/evaluation/1.html", self.url + "/run/python.html"):
            status, _, text = self.ask("GET", urllib.parse.urlsplit(page).path)
            if status == 200:
                self.assertIn(b"partial: softmax:float32", text, page)
            else:
                self.assertIn("/run/", page)  # whose address is made from the name
        self.stop(server)
        self.run_kjudge("fsck", "results")

    def test_what_is_asked_for_is_part_of_what_is_the_same(self):
        for name, run, variant in (("a.py", "ada", ":float32"), ("b.py", "ben", ":float32"), ("c.py", "cyd", ""),
                                   ("d.py", "dan", ":::wide"), ("e.py", "ada", ":float32")):
            self.submit_locally(name, run, variant)
        self.assertEqual(sorted(os.listdir(self.path("results/submissions"))), ["1", "2", "3", "4", "5"])
        _, said = self.judge()
        self.assertRegex(said, r"1 ada: accepted, [0-9.]+x \[.*\], partial: softmax:float32")
        self.assertRegex(said, r"2 ben: same files as 1: accepted")
        self.assertRegex(said, r"3 cyd: runtime_error.*no such shape here")
        self.assertRegex(said, r"4 dan: accepted")
        self.assertEqual([[shape["name"] for shape in self.result(number)["shapes"]] for number in (2, 4)],
                         [["wide", "narrow", "odd"], ["wide"]])
        self.assertEqual(self.result(1)["id"], self.result(2)["id"])
        self.assertNotEqual(self.result(1)["id"], self.result(4)["id"])
        self.assertEqual(sorted(self.runs("softmax:::wide")), ["ada", "ben", "dan"])
        self.assertEqual(sorted(self.runs("softmax:float32")), ["ada", "ben"])
        self.assertEqual(self.runs("softmax"), [])
        out, _ = self.run_kjudge("rank", "results", "softmax", "--history", "dan")
        self.assertIn("partial: softmax:::wide", out)
        self.assertIn("nothing was waiting", self.judge()[1])
        self.run_kjudge("fsck", "results")

    def test_one_shape_has_a_leaderboard_once_somebody_asks_for_it(self):
        token = self.token("Ada")
        server = self.serve()
        whole = self.upload("whole")
        self.ask_json("POST", "/api/submissions", whole, token=token, status=201)
        handed_in = self.ask_json("POST", "/api/submissions", self.upload(
            "one", ONLY_FLOAT32, challenge="softmax:::wide"), token=token, status=201)
        self.assertEqual((handed_in["challenge"], handed_in["variant"]), ("softmax", "softmax:::wide"))
        self.judge()
        self.wait_for(lambda: self.ask_json("GET", "/api/submissions/2", token=token)["state"] == "done", "verdict")
        evaluation = self.ask_json("GET", "/api/submissions/2", token=token)["evaluations"][0]
        self.assertEqual((evaluation["variant"], evaluation["of"]), ("softmax:::wide", 2))
        self.assertEqual([shape["name"] for shape in evaluation["shapes"]], ["wide"])
        board, = [board for board in self.ask_json("GET", "/api/leaderboard/softmax")["boards"] if "shape" in board]
        self.assertEqual((board["shape"], sorted(row["run"] for row in board["rows"])), ("wide", ["one", "whole"]))
        self.assertEqual(self.ask("GET", urllib.parse.urlsplit(board["url"]).path)[0], 200)
        self.stop(server)

    def test_a_gpu_that_this_node_has_not_is_waited_for(self):
        token = self.token("Ada")
        server = self.serve()
        self.write("submission.py", ONLY_FLOAT32)
        for gpu in ("h200", "NVIDIA H200", "x86_64"):
            self.ask_json("POST", "/api/submissions", self.upload(
                challenge="softmax:%s:%s" % ("float32" if gpu == "x86_64" else "", gpu)), token=token, status=201)
        client = self.client("--run", "my-team", "--challenge", "softmax:bfloat16", "--server", self.url, token=token)
        client.stdout.readline()
        _, said = self.judge()
        self.assertIn("3 my-team: accepted", said)
        for variant, numbers in (("softmax::h200", "1, 2"), ("softmax:bfloat16", "4")):
            self.assertIn("left for a judge elsewhere, since this is x86_64, what asks for %s: %s\n" %
                          (variant, numbers), said)
        found = self.ask_json("GET", "/api/submissions/1", token=token)
        self.assertEqual((found["state"], found["waits_for"]), ("waiting", "h200"))
        self.assertNotIn("waits_for", self.ask_json("GET", "/api/submissions/4", token=token))
        _, said = self.judge()
        self.assertIn("left for a judge elsewhere", said)
        self.assertNotIn("nothing was waiting", said)
        client.kill()
        client.communicate()
        status = self.client("--status", "1", "--wait", "--server", self.url, token=token)
        line = status.stderr.readline()
        self.assertIn("for a judge with h200, which none had yet", line)
        status.kill()
        self.stop(server)

    def test_what_a_challenge_has_not(self):
        token = self.token("Ada")
        server = self.serve()
        for variant, why in (("softmax:int8", "no shape of dtype \"int8\"; it has bfloat16, float16, float32"),
                             ("softmax:float16::wide", "no shape \"wide\" here; it has half"),
                             ("softmax:::odd", "it has big, half, narrow, wide"),
                             ("softmax:float32:h200", "it has bfloat16"), ("softmax@2", "in version 1, not 2"),
                             ("softmax:a:b:c:d", "more than four parts"), ("all:float32", "nothing goes with it"),
                             ("chess:float32", "there is no \"chess\" here; there is softmax")):
            problem = self.ask_json("POST", "/api/submissions", self.upload(challenge=variant), token=token, status=400)
            self.assertIn(why, problem["error"])
        self.stop(server)
        for variant in (":int8", "@2"):
            _, err = self.submit_locally("a.py", "ada", variant, status=2)
            self.assertIn("challenge softmax", err)
        self.assertEqual(os.listdir(self.path("results/submissions")), [])

    def test_a_folder_of_submissions_for_a_part_and_for_all_challenges(self):
        self.write("from/ada.py", ONLY_FLOAT32)
        self.judge("--from", "from", "--variant", "softmax:float32")
        self.assertEqual(self.result(1)["variant"], "softmax:float32")
        self.judge("--from", "from", "--variant", "softmax:float32")
        self.assertEqual(os.listdir(self.path("results/submissions")), ["1"])
        self.judge("--from", "from")  # the same files for all of it
        self.assertEqual(self.result(2)["verdict"], "runtime_error")
        _, err = self.judge("--from", "from", "--variant", "matmul:float32", status=2)
        self.assertIn("expected one of challenge softmax", err)
        self.judge("--variant", "softmax:float32", status=2)
        self.write("ben.py", _kjudge.RIGHT)
        self.run_kjudge("submit", "ben.py", "--run", "ben", "--challenge", "all", "--results", "results", "--no-wait")
        self.run_kjudge("submit", "ben.py", "--run", "ben", "--challenge", "all", "--results", "results", "--no-keep",
                        status=2)
        self.judge()
        self.assertEqual(self.runs("softmax"), ["ben"])

    def test_what_is_judged_again_is_the_same_part(self):
        for name, run in (("a.py", "ada"), ("b.py", "ben")):
            self.submit_locally(name, run, ":float32", ONLY_FLOAT32 + "# " + run)
        self.judge("--keep-bundles", "best")
        playoff = ["playoff", "results", "--challenge", self.challenge, "--unsafe", "--json"]
        self.assertEqual(json.loads(self.run_kjudge(*playoff, "softmax")[0])["judged_again"], [])
        done = json.loads(self.run_kjudge(*playoff)[0])
        self.assertTrue(done["judged_again"])
        self.assertEqual(self.rank("softmax:float32")["pending"], [])
        done = json.loads(self.run_kjudge(*playoff, "softmax:float32")[0])
        self.assertEqual((done["judged_again"], done["play_offs"]), ([], []))
        entries = self.rank("softmax:float32")["entries"]
        self.assertEqual(sorted(entry["run"] for entry in entries), ["ada", "ben"])
        made = [(submission, int(n)) for submission in (1, 2)
                for n in os.listdir(self.path("results/submissions/%d/evaluations" % submission))]
        self.assertGreater(len(made), 2)
        for submission, number in made:
            self.assertEqual(self.result(submission, number)["variant"], "softmax:float32")
        for folder, _, files in os.walk(self.path("results", "playoffs")):
            for name in files if folder.endswith("results") else ():
                with open(os.path.join(folder, name)) as file:
                    self.assertEqual(json.load(file)["variant"], "softmax:float32")
        out, _ = self.run_kjudge("replay", "--challenge", self.challenge, "--json", "--again",
                                 self.path("results/submissions/1/evaluations/1"))
        self.assertEqual([shape["name"] for shape in json.loads(out)["shapes"]], ["wide", "narrow", "odd"])

    def test_a_set_judged_again(self):
        for run, variant, code in (("ada", ":float32", ONLY_FLOAT32), ("ben", "", _kjudge.RIGHT)):
            self.submit_locally(run + ".py", run, variant, code)
        self.judge()
        set_of = ["rejudge", "results", "--set", "1"]
        _, err = self.run_kjudge("rejudge", "results", "--challenge", "softmax:float32", "--reason", "a new fan", status=2)
        self.assertIn("expected the name of a challenge alone", err)
        out, _ = self.run_kjudge("rejudge", "results", "--challenge", "softmax", "--reason", "a new fan")
        lines = out.splitlines()
        self.assertTrue(lines[0].endswith("change          partial"), out)
        self.assertEqual([line.endswith("  softmax:float32") for line in lines[1:]], [True, False], out)
        self.run_kjudge(*set_of, "--judge", "--unsafe")
        made = json.loads(self.run_kjudge(*set_of, "--apply", "--json")[0])["evaluations"]
        self.assertEqual([one.get("variant") for one in made], ["softmax:float32", None])
        for submission, shapes in ((1, ["wide", "narrow", "odd"]), (2, ["wide", "narrow", "half", "odd", "odd-half"])):
            again = self.result(submission, 2)
            self.assertEqual([shape["name"] for shape in again["shapes"]], shapes)
            self.assertEqual(again["id"], made[submission - 1]["new"]["id"])
        self.assertEqual([entry["judged"] for entry in self.rank("softmax:float32")["entries"]], [2, 2])
        # What does not count is told once, and not that it is ranked elsewhere.
        self.run_kjudge("invalidate", "results", "--run", "ada", "--reason", "its fan")
        self.assertEqual(self.runs("softmax:float32"), ["ben"])
        _, err = self.run_kjudge("rank", "results")
        self.assertIn("2 evaluations do not count: its fan (submission 1)", err)
        self.assertNotIn("ranked there", err)
        self.run_kjudge("fsck", "results")
        self.run_kjudge("export", "results", "-o", "x.zst")
        done = subprocess.run(["zstd", "-dc", self.path("x.zst")], stdout=subprocess.PIPE, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line.get("variant") for line in lines if line["kind"] == "submission"],
                         ["softmax:float32", None])

    def test_files_that_were_not_kept_answer_for_none_that_are(self):
        token = self.token("Ada")
        server = self.serve()
        for keep in (False, True):
            self.ask_json("POST", "/api/submissions", self.upload(
                code=ONLY_FLOAT32, challenge="softmax:float32", keep=keep), token=token, status=201)
            _, err = self.judge()
            self.assertNotIn("same files", err)
        self.stop(server)
        self.assertNotEqual(self.result(1)["id"], self.result(2)["id"])
        self.assertIn("bundle.kjb", os.listdir(self.path("results/submissions/2/evaluations/1")))
        self.run_kjudge("fsck", "results")
        # Nothing is there to judge again, which keeps nobody else from it.
        _, err = self.run_kjudge("rejudge", "results", "--submission", "1", "--reason", "to see", status=2)
        self.assertIn("1 my-team: its files were not to be kept; left out\n", err)
        out, err = self.run_kjudge("rejudge", "results", "--run", "my-team", "--reason", "to see", "--json")
        self.assertEqual([one["submission"] for one in json.loads(out)["evaluations"]], [2])

    def test_a_part_with_all_that_is_timed_is_the_whole(self):
        def drop_half(challenge):
            challenge["shapes"] = [one for one in challenge["shapes"] if one["name"] != "half"]
        self.change_challenge(drop_half)  # which leaves its test
        self.submit_locally("a.py", "ada", ":float32", _kjudge.RIGHT)
        self.submit_locally("b.py", "ben", ":float32", ONLY_FLOAT32)
        self.judge("--pages", "pages")
        self.assertEqual((self.result(1)["verdict"], self.result(2)["verdict"]), ("accepted", "runtime_error"))
        self.assertNotIn("variant", self.result(1))
        self.assertEqual(self.runs("softmax"), ["ada"])

    def test_target_and_bounty_are_those_of_the_whole(self):
        self.change_challenge(lambda challenge: challenge.update(target_us=1e6, bounty="a mug"))
        for run, variant, code in (("ada", ":float32", ONLY_FLOAT32), ("ben", "", _kjudge.RIGHT)):
            self.submit_locally(run + ".py", run, variant, code)
        self.judge("--pages", "pages")
        whole = self.rank("softmax")
        self.assertEqual((whole["target_us"], whole["bounty"]), (1e6, "a mug"))
        self.assertEqual([entry["target_met"] for entry in whole["entries"]], [True])
        for variant in ("softmax:float32", "softmax:::wide", "softmax:float16"):
            part = self.rank(variant)
            self.assertTrue(part["entries"])
            self.assertFalse({"target_us", "bounty"} & set(part), variant)
            self.assertFalse(any("target_met" in entry for entry in part["entries"]), variant)
        _, err = self.run_kjudge("rank", "results", "softmax:float32")
        self.assertNotIn("mug", err)
        boards = self.path("pages", "leaderboard")
        met = {name.partition("-m1")[2]: "target met" in open_text(os.path.join(boards, name))
               for name in os.listdir(boards)}
        self.assertEqual(met, {".html": True, "-float32.html": False, "-float16.html": False})

    def test_pages_of_what_was_judged_need_no_challenge(self):
        self.submit_locally("a.py", "ada", ":float32")
        self.judge("--pages", "judged")
        self.run_kjudge("pages", "results", "-o", "made")
        self.assert_same_files("judged", "made")
        # A new version takes nothing from the pages of the old one.
        boards = set(os.listdir(self.path("made", "leaderboard")))
        self.assertEqual(len(boards), 3)
        self.change_challenge(lambda challenge: challenge.update(version=2, title="Softmax again"))
        self.judge("--pages", "judged")
        self.run_kjudge("pages", "results", "-o", "made")
        self.assert_same_files("judged", "made")
        found = set(os.listdir(self.path("made", "leaderboard")))
        self.assertEqual((len(found), boards - found), (6, set()))
        self.assertIn("Leaderboard</dt><dd><a href=\"../leaderboard/", open_text(self.path("made/evaluation/1.html")))
        self.assertIn(">x86_64, float32</a>", open_text(self.path("made/evaluation/1.html")))
        self.assertIn("Dimensions", open_text(self.path("made/challenge/softmax-1.html")))
        self.assertEqual(open_text(self.path("made/index.html")).count("Softmax again"), 2)

    def assert_same_files(self, one, other):
        """But for what each program notes there for itself."""
        def files(top):
            return {os.path.relpath(os.path.join(folder, name), top): open_text(os.path.join(folder, name))
                    for folder, _, names in os.walk(top) for name in names if not name.startswith(".")
                    and "/." not in folder}
        left, right = files(self.path(one)), files(self.path(other))
        self.assertEqual(sorted(left), sorted(right))
        self.assertEqual([name for name in left if left[name] != right[name]], [])

    def test_a_server_that_is_started_again_while_clients_wait(self):
        token = self.token("Ada")
        server = self.serve()
        self.write("submission.py", ONLY_FLOAT32)
        clients = [self.client("--run", "my-team", "--challenge", "softmax:float32:x86_64", "--server", self.url,
                               token=token, script=script) for script in (True, False)]
        for client in clients:
            client.stdout.readline()
            self.assertIn("for a judge with x86_64, which none had yet", client.stderr.readline())
        self.stop(server)
        for client in clients:
            while "does not answer" not in client.stderr.readline():
                pass
        self.judge()
        server = self.serve(listen="127.0.0.1:%d" % self.port)
        for client in clients:
            out, _ = self.finish(client)
            self.assertTrue(out.startswith("partial, softmax:float32: accepted\n"), out)
            self.assertTrue(out.endswith("rank: 1 of 1, among those of softmax:float32\n"), out)
        self.stop(server)

    def test_only_its_shapes_are_profiled(self):
        os.chmod(self.write("ncu", profile.NCU), 0o755)
        self.submit_locally("a.py", "ada", ":float32")
        self.judge("--pages", "pages", KJUDGE_TEST_NCU=self.path("ncu"), NCU_CALL=self.path("call"))
        self.assertEqual(sorted(name for name in os.listdir(self.path("results/submissions/1/evaluations/1"))
                                if name.startswith("profile")), ["profile-narrow.json", "profile-wide.json"])
        self.assertEqual(sorted(name for name in os.listdir(self.path("pages/profile")) if name.endswith(".html")),
                         ["1.narrow.html", "1.wide.html"])
        _, err = self.run_kjudge("profile", "--bundle", "results/submissions/1/evaluations/1/bundle.kjb", "--shape",
                                 "half", "--challenge", self.challenge, status=2, KJUDGE_TEST_NCU=self.path("ncu"))
        self.assertIn("has no half; what was recorded is narrow, odd, wide", err)

    def test_selftest_of_a_dtype(self):
        path = self.write("submission.py", ONLY_FLOAT32)
        out, _ = self.run_kjudge("selftest", path, "--challenge", self.challenge, "--dtype", "float32")
        self.assertIn("partial: only softmax:float32 was asked for", out)
        self.run_kjudge("selftest", path, "--challenge", self.challenge, status=1)
        _, err = self.run_kjudge("selftest", path, "--challenge", self.challenge, "--dtype", "int8", status=2)
        self.assertIn("wide of float32", err)


if __name__ == "__main__":
    unittest.main()
