# SPDX-License-Identifier: Apache-2.0
"""kjudge judge: a queue that loses nothing and judges nothing twice, however it is killed."""

import json
import os
import shutil
import time

import _kjudge


class JudgeResumes(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()
        self.hand_in("ada")
        self.write("from/dan/submission.py", "raise ValueError('no')\n")
        self.write("from/dan/notes.txt", "\n")
        self.write("from/readme.txt", "not a submission\n")
        self.arguments = ("judge", "results", "--from", "from", "--challenge", self.challenge,
                          "--unsafe")

    def hand_in(self, *runs):
        for run in runs:
            self.write("from/%s.py" % run, _kjudge.RIGHT + "# %s\n" % run)

    def verdicts(self):
        """{number: [(run, verdict), ...]} of what lies in the results directory."""
        found = {}
        top = self.path("results", "submissions")
        for number in os.listdir(top) if os.path.isdir(top) else ():
            if number.startswith("."):
                continue
            with open(os.path.join(top, number, "submission.json")) as file:
                run = json.load(file)["run"]
            evaluations = os.path.join(top, number, "evaluations")
            found[int(number)] = []
            for name in sorted(os.listdir(evaluations) if os.path.isdir(evaluations) else ()):
                if not name.startswith("."):
                    with open(os.path.join(evaluations, name, "result.json")) as file:
                        found[int(number)].append((run, json.load(file)["verdict"]))
        return found

    ALL = {1: [("ada", "accepted")], 2: [("dan", "runtime_error")]}
    FOUR = {1: [("ada", "accepted")], 2: [("ben", "accepted")], 3: [("cyd", "accepted")],
            4: [("dan", "runtime_error")]}

    def test_judges_a_folder_once(self):
        self.hand_in("ben", "cyd")
        out, _ = self.run_kjudge(*self.arguments, "--json")
        self.assertEqual([(j["number"], j["run"], j["verdict"]) for j in json.loads(out)["judged"]],
                         [(1, "ada", "accepted"), (2, "ben", "accepted"), (3, "cyd", "accepted"),
                          (4, "dan", "runtime_error")])
        self.assertEqual(self.verdicts(), self.FOUR)
        evaluation = self.path("results/submissions/1/evaluations/1")
        self.assertEqual(sorted(os.listdir(evaluation)), ["bundle.kjb", "kernels.sha256", "log.txt", "result.json", "secret.json"])
        self.assertEqual(sorted(os.listdir(self.path("results/submissions/4/files"))),
                         ["notes.txt", "submission.py"])
        before = os.stat(evaluation).st_mtime_ns
        out, err = self.run_kjudge(*self.arguments)
        self.assertIn("nothing was waiting", err)
        self.assertEqual(os.stat(evaluation).st_mtime_ns, before)
        self.assertEqual(self.verdicts(), self.FOUR)
        self.assert_nothing_left()

        out, _ = self.run_kjudge("rank", "results")
        self.assertEqual(sorted(line.split()[1] for line in out.splitlines()[1:]),
                         ["ada", "ben", "cyd"])
        out, _ = self.run_kjudge("show", "4", "--results", "results")
        self.assertIn("ValueError: no", out)

    def test_killed_at_any_time(self):
        self.hand_in("ben", "cyd")
        start = time.monotonic()
        self.run_kjudge(*self.arguments)
        whole = time.monotonic() - start
        shutil.rmtree(self.path("results"))
        kills = 8
        for kill in range(kills):
            process = self.start(*self.arguments)
            time.sleep(whole * (kill + 1) / (kills + 1) / 2)
            process.kill()
            process.communicate()
            seen = self.verdicts()  # whatever is there is whole
            for number, evaluations in seen.items():
                self.assertLessEqual(len(evaluations), 1, number)
        self.wait_for(lambda: not self.processes(), "end of all processes", seconds=10)
        self.run_kjudge(*self.arguments)
        self.assertEqual(self.verdicts(), self.FOUR)
        for folder, folders, files in os.walk(self.path("results")):
            for name in folders + files:
                self.assertFalse(name.startswith(".new-") or ".tmp." in name, (folder, name))

    def test_one_judge_at_a_time(self):
        first = self.start(*self.arguments)
        self.wait_for(lambda: os.path.exists(self.path("results/submissions/1")), "first submission")
        _, err = self.run_kjudge(*self.arguments, status=75)
        self.assertIn("try again later", err)
        first.communicate()
        self.assertEqual(first.returncode, 0)

    def test_bad_result_is_skipped_and_told(self):
        self.hand_in("ben")
        self.run_kjudge(*self.arguments)
        bad = self.path("results/submissions/2/evaluations/1/result.json")
        with open(bad, "w") as file:
            file.write('{"format": "kjudge-result/1"')
        out, err = self.run_kjudge("rank", "results", status=3)
        self.assertNotIn("ben", out)
        self.assertIn("ada", out)
        self.assertIn(os.path.relpath(bad, self.folder), err)

    def test_new_version_is_judged_again_and_ranked(self):
        self.run_kjudge(*self.arguments)
        self.change_challenge(title="Changed")
        _, err = self.run_kjudge(*self.arguments, status=2)
        self.assertIn("raise the version", err)
        self.change_challenge(version=2)
        self.run_kjudge(*self.arguments)
        self.assertEqual([len(e) for _, e in sorted(self.verdicts().items())], [2, 2])
        _, err = self.run_kjudge(*self.arguments)
        self.assertIn("nothing was waiting", err)
        out, err = self.run_kjudge("rank", "results")
        self.assertEqual([line.split()[1] for line in out.splitlines()[1:]], ["ada"])
        self.assertNotIn("left out", err)

    def test_several_challenges_in_one_directory(self):
        self.run_kjudge(*self.arguments)
        self.change_challenge(name="other")
        os.remove(self.path("from/dan/submission.py"))
        _, err = self.run_kjudge(*self.arguments)
        self.assertIn("3 ada: accepted", err)
        self.assertEqual(self.verdicts(), {**self.ALL, 3: [("ada", "accepted")]})
        for number, challenge in ((1, "softmax"), (3, "other")):
            with open(self.path("results/submissions/%d/submission.json" % number)) as file:
                self.assertEqual(json.load(file)["challenge"], challenge)
        _, err = self.run_kjudge(*self.arguments)
        self.assertIn("nothing was waiting", err)

    def test_python_that_is_missing_is_the_judges_fault(self):
        _, err = self.run_kjudge(*self.arguments, status=5, PATH=self.path("empty"))
        self.assertIn("python3 could not be started", err)
        for _ in range(2):  # loudly until it is mended, and tried no more
            _, err = self.run_kjudge(*self.arguments, status=5)
            for label in ("1 ada", "2 dan"):
                self.assertRegex(err, label + ": judge error after 3 attempts.*python3 could not be started"
                                 ".*judge with --retry")
        self.assertEqual([len(e) for _, e in sorted(self.verdicts().items())], [1, 1])
        self.run_kjudge(*self.arguments, "--retry")  # and so nobody's verdict
        self.assertEqual([e[-1][1] for _, e in sorted(self.verdicts().items())],
                         ["accepted", "runtime_error"])
        _, err = self.run_kjudge(*self.arguments, "--retry")
        self.assertIn("nothing was waiting", err)

    def test_the_same_files_have_the_first_result(self):
        shutil.copy(self.path("from/ada.py"), self.write("from/zoe/submission.py", ""))
        out, err = self.run_kjudge(*self.arguments, "--json")
        self.assertIn("3 zoe: same files as 1: accepted", err)
        self.assertEqual([(j["run"], j.get("same_as")) for j in json.loads(out)["judged"]],
                         [("ada", None), ("dan", None), ("zoe", 1)])
        for name in ("result.json", "log.txt", "bundle.kjb", "kernels.sha256", "secret.json"):
            with open(self.path("results/submissions/1/evaluations/1", name), "rb") as first, \
                    open(self.path("results/submissions/3/evaluations/1", name), "rb") as second:
                self.assertEqual(first.read(), second.read(), name)
        out, _ = self.run_kjudge("rank", "results")
        self.assertEqual([line.split()[1] for line in out.splitlines()[1:]], ["ada", "zoe"])

    def test_the_same_kernels_are_told(self):
        self.write("from/zoe.py", "# A comment, and kernels that are ada's.\n" + _kjudge.RIGHT)
        self.write("from/zut.py", _kjudge.RIGHT.replace("min(rows, 64)", "min(rows, 32)"))
        out, err = self.run_kjudge(*self.arguments, "--json")
        self.assertRegex(err, "3 zoe: accepted, .*; same kernels as 1\n")
        self.assertEqual([(j["run"], j.get("same_kernels_as")) for j in json.loads(out)["judged"]],
                         [("ada", None), ("dan", None), ("zoe", 1), ("zut", None)])

    def test_the_same_content_is_kept_once(self):
        self.write("from/eve/submission.py", "import notes\n" + _kjudge.RIGHT)
        self.write("from/eve/notes.txt", "\n")  # as dan's
        self.run_kjudge(*self.arguments)
        files = [self.path("results/submissions", number, "files/notes.txt") for number in "23"]
        self.assertTrue(os.path.samefile(*files))
        os.truncate(files[0], 0)  # breaks both, and the blob
        out, _ = self.run_kjudge("fsck", "results", "--json", status=3)
        found = {os.path.relpath(f["path"], "results"): f["what"] for f in json.loads(out)["findings"]}
        self.assertEqual([path for path in found if path.startswith("submissions/")],
                         ["submissions/2/files", "submissions/3/files"])
        blob = [path for path in found if path.startswith("blobs/sha256/")]
        self.assertEqual(len(blob), 1)
        self.assertIn("in every file that is a link to it", found[blob[0]])
        # What is handed in now is whole.
        self.write("from/fay/submission.py", _kjudge.RIGHT + "# fay\n")
        self.write("from/fay/notes.txt", "\n")
        self.run_kjudge(*self.arguments)
        with open(self.path("results/submissions/4/files/notes.txt")) as file:
            self.assertEqual(file.read(), "\n")

    def test_watch_judges_what_comes_in(self):
        watching = self.start(*self.arguments, "--watch")
        self.wait_for(lambda: self.verdicts() == self.ALL, "verdicts")
        path = self.write("eve.py", _kjudge.RIGHT + "# eve\n")
        os.rename(path, self.path("from/eve.py"))
        self.wait_for(lambda: self.verdicts().get(3) == [("eve", "accepted")], "third verdict")
        _kjudge.interrupt(watching)
        watching.communicate()
        self.assertEqual(watching.returncode, 130)

    def test_names_that_are_no_names_are_left_out(self):
        self.write("from/two\nlines.py", _kjudge.RIGHT)
        self.write("from/.hidden.py", _kjudge.RIGHT)
        os.symlink("nothing", self.path("from/dangling.py"))
        os.symlink("circle.py", self.path("from/circle.py"))
        os.symlink(self.path("from/ada.py"), self.path("from/file.py"))
        os.symlink(self.path("from/dan"), self.path("from/folder"))
        os.mkfifo(self.path("from/fifo.py"))
        os.mkdir(self.path("from/no_entry"))
        self.write("from/notes.txt", "")
        self.write("from/%s.py" % ("n" * 201), _kjudge.RIGHT)
        with open(os.fsencode(self.path("from")) + b"/caf\xe9.py", "w") as file:
            file.write(_kjudge.RIGHT)
        for _ in range(2):  # and nothing is added at each call
            out, err = self.run_kjudge(*self.arguments, "--json", status=1)
            refused = {r["name"]: r["message"] for r in json.loads(out)["refused"]}
            self.assertEqual(sorted(refused), sorted(
                ["two\nlines.py", "dangling.py", "circle.py", "file.py", "folder", "fifo.py",
                 "n" * 201 + ".py", "caf\ufffd.py"]))
            for name, why in (('"two\\nlines.py"', "its name is not UTF-8 or holds control characters"),
                              ("dangling.py", "a link"), ("circle.py", "a link"),
                              ("file.py", "a link"), ("folder", "a link"),
                              ("fifo.py", "not a file or folder"),
                              ("n.py", "the name of its run has 201 bytes; 1 to 200 are allowed")):
                self.assertIn("%s: refused: %s" % (name, why), err)
        for name, why in (("no_entry", "a folder without submission.py or submission.cu"),
                          ("notes.txt", "neither a .py or .cu file nor an archive nor a folder")):
            self.assertIn("%s: left out: %s" % (name, why), err)
        self.assertEqual(self.verdicts(), self.ALL)

    def test_refused_at_the_door(self):
        os.symlink("/etc/passwd", self.path("from/dan/secrets"))
        self.write("from/eve.zip", "not an archive")
        self.write("from/big/submission.py", "#" * (17 << 20))
        for judged in ([1], []):  # told until it is mended
            out, err = self.run_kjudge(*self.arguments, "--json", status=1)
            self.assertIn("dan: refused: secrets: only regular files", err)
            document = json.loads(out)
            self.assertEqual([j["number"] for j in document["judged"]], judged)
            self.assertEqual([r["name"] for r in document["refused"]], ["big", "dan", "eve.zip"])
            self.assertIn("secrets: only regular files", document["refused"][1]["message"])
        self.assertEqual(sorted(self.verdicts()), [1])
        for name in ("dan", "big"):
            shutil.rmtree(self.path("from", name))
        os.remove(self.path("from/eve.zip"))
        self.assertEqual(json.loads(self.run_kjudge(*self.arguments, "--json")[0])["refused"], [])


if __name__ == "__main__":
    _kjudge.main()
