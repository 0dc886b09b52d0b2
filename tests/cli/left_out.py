# SPDX-License-Identifier: Apache-2.0
"""A file of a results directory that cannot be read: the rest is done, the file is told, and the exit
code says so."""

import json
import os
import shutil

import _kjudge
import _results_directory

RESULT = "submissions/2/evaluations/1/result.json"
IDENTITY = "submissions/2/submission.json"
# What is wrong with a file: how to make it so, the exit code, and whose fault is told.
HARMS = {
    "cut": (lambda path: os.truncate(path, 20), 3, "malformed"),
    "nonsense": (lambda path: _write(path, b"\xff\x00{"), 3, "malformed"),
    "empty": (lambda path: os.truncate(path, 0), 3, "malformed"),
    "gone": (os.remove, 6, "host"),
    "a folder": (lambda path: (os.remove(path), os.mkdir(path)), 6, "host"),
    "a pipe": (lambda path: (os.remove(path), os.mkfifo(path)), 3, "malformed"),
}
# Each goes on with the rest; by what that is seen.
WALKS = (
    (("rank", "results"), "ada"),
    (("rank", "results", "--history", "ada"), "accepted"),
    (("pages", "results", "--output", "pages"), "pages: "),
    (("export", "results", "-o", "out.jsonl.zst"), ""),
    (("invalidate", "results", "--run", "ada", "--preview"), "ada"),
)


def _write(path, text):
    with open(path, "wb") as file:
        file.write(text)


class LeftOut(_kjudge.Case):
    def fresh(self):
        shutil.rmtree(self.path("results"), ignore_errors=True)
        results = _results_directory.Results(self.path("results"))
        results.add("ada", "a.py", _results_directory.faster(1.0, 1))
        results.add("ben", "b.py", _results_directory.faster(1.3, 2))
        _results_directory.write_json(self.path("results/bars/1/bar.json"), {
            "format": "kjudge-bar/1", "name": "cuDNN", "variant": "softmax", "speedup": 2.0, "basis": "claimed",
            "source": "a paper", "made": "2026-11-30T00:00:00Z"})

    def test_rank_pages_and_export_end_with_0_although_a_file_cannot_be_read(self):
        for harmed in (RESULT, IDENTITY):
            for what, (harm, status, fault) in HARMS.items():
                for arguments, rest in WALKS:
                    with self.subTest(harmed, what=what, command=arguments):
                        self.fresh()
                        harm(self.path("results", harmed))
                        out, err = self.run_kjudge(*arguments, status=status)
                        self.assertIn("kjudge: %s: results/%s: " % (fault, harmed), err)
                        self.assertEqual(err.count(harmed), 1, err)
                        self.assertIn(rest, out)

    def test_the_machines_fault_goes_before_a_malformed_file(self):
        self.fresh()
        os.truncate(self.path("results", IDENTITY), 0)
        os.remove(self.path("results/submissions/1/evaluations/1/result.json"))
        for arguments, _ in WALKS[:1] + WALKS[2:4]:
            _, err = self.run_kjudge(*arguments, status=6)
            self.assertIn("kjudge: malformed: results/" + IDENTITY, err)
            self.assertIn("kjudge: host: results/submissions/1/evaluations/1/result.json", err)

    def test_json_has_what_was_left_out(self):
        self.fresh()
        for arguments, _ in WALKS[:4]:
            self.assertNotIn("left_out", json.loads(self.run_kjudge(*arguments, "--json")[0]))
        os.truncate(self.path("results", RESULT), 20)
        for arguments in (("rank", "results"), ("rank", "results", "--history", "ada"),
                          ("export", "results", "-o", "out.jsonl.zst")):
            told = json.loads(self.run_kjudge(*arguments, "--json", status=3)[0])["left_out"]
            self.assertEqual(len(told), 1)
            self.assertIn("malformed: results/" + RESULT, told[0])
        out, _ = self.run_kjudge("pages", "results", "--output", "pages", "--json", status=3)
        self.assertEqual(json.loads(out)["skipped"], 1)

    def test_records_that_cannot_be_read(self):
        for command, name in ((("bar", "list", "results"), "bars/1/bar.json"),
                              (("invalidate", "results", "--list"), "invalidations/1/invalidation.json"),
                              (("rejudge", "results", "--list"), "rejudgements/1/rejudgement.json"),
                              (("token", "list", "--results", "results"), "tokens/%s.json" % ("0" * 64)),
                              (("rank", "results"), "bars/1/bar.json"),
                              (("rank", "results"), "playoffs/1/playoff.json"),
                              (("pages", "results", "--output", "pages"), "invalidations/1/invalidation.json"),
                              (("show", "1", "--results", "results"), "invalidations/1/invalidation.json")):
            with self.subTest(command, name=name):
                self.fresh()
                self.write("results/" + name, "{")
                _, err = self.run_kjudge(*command, status=3)
                self.assertIn("kjudge: malformed: results/%s: " % name, err)

    def test_a_file_in_the_place_of_a_folder(self):
        for name, command in (("bars", ("bar", "list", "results")), ("bars", ("rank", "results")),
                              ("tokens", ("token", "list", "--results", "results")),
                              ("submissions/2/evaluations", ("rank", "results"))):
            with self.subTest(name, command=command):
                self.fresh()
                shutil.rmtree(self.path("results", name), ignore_errors=True)
                self.write("results/" + name, "")
                _, err = self.run_kjudge(*command, status=6)
                self.assertIn("kjudge: host: results/" + name, err)

    def test_what_a_judge_at_work_has_begun_is_no_damage(self):
        self.fresh()
        for name in ("submissions/.new-here/files/a.py", "submissions/.new-here/submission.json",
                     "submissions/2/claims/.new-here/lease.json", "submissions/2/claims/1/work/result.json",
                     "submissions/2/claims/1/work/bundle.kjb.tmp", "submissions/2/claims/1/running.json.tmp.abcdef",
                     "submissions/2/evaluations/1/profile-a.json.tmp.abcdef", "bars/.new-here/bar.json",
                     "tokens/%s.json.tmp.abcdef" % ("0" * 64), "scores.index.tmp.abcdef"):
            self.write("results/" + name, "{")
        self.write("results/submissions/2/claims/1/lease.json", json.dumps(
            {"format": "kjudge-lease/1", "attempt": 1, "seconds": 120, "taken": "2026-11-30T00:00:00Z",
             "holder": {"host": "elsewhere", "boot_id": "x", "pid": 1, "start_ticks": 1, "pid_namespace": 1}}))
        for arguments, rest in WALKS + ((("token", "list", "--results", "results"), ""),
                                        (("bar", "list", "results"), "cuDNN")):
            with self.subTest(arguments):
                out, err = self.run_kjudge(*arguments)
                self.assertIn(rest, out)
                self.assertNotIn("malformed", err)
                self.assertNotIn("host:", err)

    def test_judge_goes_on_and_says_so_in_the_end(self):
        challenge = self.small_challenge()
        self.write("from/ada.py", _kjudge.RIGHT)
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge, "--unsafe")
        self.write("results/submissions/2/submission.json", "{")
        self.write("from/ben.py", _kjudge.RIGHT + "# other")
        out, err = self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge, "--unsafe",
                                   status=3)
        self.assertIn("accepted", out)
        self.assertIn("kjudge: malformed: results/submissions/2/submission.json: ", err)


if __name__ == "__main__":
    _kjudge.main()
