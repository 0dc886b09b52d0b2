# SPDX-License-Identifier: Apache-2.0
"""kjudge export: all of a results directory as JSON lines that the installed schema takes, with code and
machine code only of those who allow it, and never a secret."""

import base64
import hashlib
import json
import os
import shutil
import subprocess

import _kjudge
import _results_directory

try:
    import jsonschema
except ImportError:
    raise SystemExit("jsonschema is not installed: apt-get install python3-jsonschema")


class Export(_kjudge.Case):
    def export(self, *arguments, **more):
        out, self.said = self.run_kjudge("export", "results", "-o", "out.jsonl.zst", "--json", *arguments, **more)
        done = subprocess.run(["zstd", "-dc", self.path("out.jsonl.zst")], stdout=subprocess.PIPE, check=True)
        lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
        with open(os.path.join(_kjudge.SHARE, "kjudge", "schema", "kjudge-export-1.json")) as file:
            validator = jsonschema.Draft202012Validator(json.load(file))
        for line in lines:
            validator.validate(line)
        self.assertEqual(lines[0]["kind"], "begin")
        self.assertEqual((lines[-1]["kind"], lines[-1]["lines"]), ("end", len(lines)))
        of = {kind: [line for line in lines if line["kind"] == kind] for kind in
              ("challenge", "submission", "evaluation", "profile", "cubin", "bar", "invalidation", "playoff")}
        counts = json.loads(out)
        for kind in ("submission", "evaluation", "profile", "cubin"):
            self.assertEqual(counts[kind + "s"], len(of[kind]), kind)
        self.assertEqual(os.listdir(self.temporary), [])
        self.text = done.stdout.decode()
        return of

    def test_code_only_of_those_who_allow_it(self):
        challenge = self.small_challenge(publish_code="licensed")
        self.write("from/ada/submission.py", "# kjudge_license: MIT\n" + _kjudge.RIGHT + "print('log of ada')\n")
        self.write("from/ada/data.bin", "")
        with open(self.path("from/ada/data.bin"), "wb") as file:
            file.write(b"\xff\x00\xfe")
        self.write("from/ben.py", _kjudge.RIGHT + "print('log of ben')\n")
        self.write("from/cyd.py", "# kjudge_label: a model\nraise ValueError('hidden text of cyd')\n")
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge, "--unsafe")
        self.run_kjudge("bar", "add", "results", "--name", "x", "--variant", "softmax", "--speedup", "2", "--source", "s")
        self.run_kjudge("invalidate", "results", "--run", "ben", "--reason", "to see")
        found = self.export()
        self.assertEqual([(s["run"], "files" in s) for s in found["submission"]],
                         [("ada", True), ("ben", False), ("cyd", False)])
        self.assertEqual((found["submission"][0]["license"], found["submission"][2]["label"]), ("MIT", "a model"))
        files = {f["name"]: f for f in found["submission"][0]["files"]}
        self.assertEqual(base64.b64decode(files["data.bin"]["base64"]), b"\xff\x00\xfe")
        with open(self.path("from/ada/submission.py")) as file:
            self.assertEqual(files["submission.py"]["text"], file.read())
        self.assertEqual([e["result"]["verdict"] for e in found["evaluation"]],
                         ["accepted", "accepted", "runtime_error"])
        self.assertEqual([e.get("invalid") for e in found["evaluation"]], [None, ["to see"], None])
        self.assertIn("log of ada", found["evaluation"][0]["result"]["log"])
        for line in found["evaluation"][1:]:
            self.assertEqual(line["result"]["log"], "")
            self.assertNotIn("cubins", line)
        with open(self.path("results/submissions/1/evaluations/1/result.json")) as file:
            self.assertEqual(found["evaluation"][0]["result"], json.load(file))  # every number
        self.assertEqual([hashlib.sha256(base64.b64decode(c["base64"])).hexdigest() for c in found["cubin"]],
                         found["evaluation"][0]["cubins"])
        self.assertEqual(len(found["cubin"]), 1)
        self.assertEqual(found["challenge"][0]["challenge"]["publish_code"], "licensed")
        self.assertEqual([b["record"]["name"] for b in found["bar"]], ["x"])
        self.assertEqual([i["record"]["reason"] for i in found["invalidation"]], ["to see"])
        with open(self.path("results/submissions/1/evaluations/1/secret.json")) as file:
            secret = json.load(file)["secret"]
        for private in (secret, "log of ben", "raise ValueError"):
            self.assertNotIn(private, self.text)
        self.assertEqual(self.export("--without-cubins")["cubin"], [])
        found = self.export("--run", "cyd")
        self.assertEqual([s["run"] for s in found["submission"]], ["cyd"])
        self.assertEqual([len(found[kind]) for kind in ("challenge", "bar", "invalidation")], [1, 1, 0])
        self.assertEqual(len(self.export("--run", "BEN")["invalidation"]), 1)
        # The challenge that was judged decides, not one that is changed later.
        found = self.export("--challenge", "other")
        self.assertEqual([len(found[kind]) for kind in ("submission", "bar", "invalidation")], [0, 0, 0])

    def test_profiles_failures_and_what_is_broken(self):
        _results_directory.make(self.path("results"))
        found = self.export(status=3)
        self.assertEqual([s["submission"] for s in found["submission"]], list(range(1, 13)))
        self.assertEqual(len(found["evaluation"]), 11)  # one was judged twice, one waits, one is broken
        self.assertEqual(len(found["profile"]), 4)
        self.assertIn("submissions/12/evaluations/1/result.json", self.said)
        self.assertEqual(found["challenge"] + found["cubin"], [])  # none is kept, so nobody allows it
        some = self.export("--gpu", "h200", "--from", "2026-11-05", "--to", "2026-11-06", status=3)
        self.assertEqual([e["result"]["started"][:10] for e in some["evaluation"]], ["2026-11-05", "2026-11-06"])

    def test_code_only_where_all_that_it_was_judged_for_allow_it(self):
        challenge = self.challenge = self.small_challenge(publish_code="never")
        self.write("ada.py", _kjudge.RIGHT + "print('log of ada')\n")
        os.makedirs(self.path("results/submissions"))
        self.run_kjudge("submit", "ada.py", "--run", "ada", "--challenge", "all", "--results", "results", "--no-wait")
        pages = []  # of the code
        for name, publish_code in (("other", "all"), ("softmax", "never")):
            self.change_challenge(name=name, publish_code=publish_code)
            self.run_kjudge("judge", "results", "--challenge", challenge, "--unsafe", "--pages", "site")
            pages.append(os.path.exists(self.path("site/code/1.html")))
            out, _ = self.run_kjudge("rank", "results", "other", "--json")
            self.assertEqual("code" in json.loads(out)["entries"][0], pages[-1])
        self.assertEqual(pages, [True, False])
        for more in ([], ["--challenge", "other"]):
            found = self.export(*more)
            self.assertEqual(["files" in s for s in found["submission"]], [False])
            self.assertEqual({e["result"]["log"] for e in found["evaluation"]}, {""})
            self.assertEqual(found["cubin"], [])

    def test_a_play_off_that_cannot_be_read_is_left_out(self):
        shutil.copytree(os.path.join(_results_directory.GOLDEN, "results-directory-v2", "results"), self.path("results"))
        count = len(self.export()["playoff"])
        os.remove(self.path("results/playoffs/1/results/1.json"))
        self.assertEqual(len(self.export(status=6)["playoff"]), count - 1)
        self.assertIn("playoffs/1/results/1.json", self.said)

    def test_one_that_was_killed_is_in_nobodys_way(self):
        _results_directory.make(self.path("results"))
        # In a container numbers of processes come again.
        process = self.popen(["sh", "-c", "touch out.zst.tmp.$$; exec \"$0\" export results -o out.zst",
                              _kjudge.BINARY], cwd=self.folder)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        self.assertTrue(os.path.exists(self.path("out.zst")))

    def test_it_appears_whole(self):
        _results_directory.make(self.path("results"))
        self.write("out.jsonl.zst", "before")
        os.mkdir(self.path("full"))
        self.run_kjudge("export", "results", "-o", "no-such-folder/x", status=6)
        shutil.rmtree(self.path("results/submissions"))
        self.run_kjudge("export", "results", "-o", "out.jsonl.zst", status=2)
        with open(self.path("out.jsonl.zst")) as file:
            self.assertEqual(file.read(), "before")
        self.assertEqual([n for n in os.listdir(self.folder) if ".tmp." in n], [])


if __name__ == "__main__":
    _kjudge.main()
