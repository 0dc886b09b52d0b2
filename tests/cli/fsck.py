# SPDX-License-Identifier: Apache-2.0
"""kjudge fsck: every kind of damage to a results directory is found, where it is, and explained."""

import json
import os
import shutil

import _kjudge

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "results-directory-v1", "results")


class Fsck(_kjudge.Case):
    def fresh(self):
        shutil.rmtree(self.path("results"), ignore_errors=True)
        shutil.copytree(GOLDEN, self.path("results"))

    def change(self, name, old, new):
        with open(self.path("results", name), "rb") as file:
            content = file.read()
        self.assertIn(old, content)
        with open(self.path("results", name), "wb") as file:
            file.write(content.replace(old, new, 1))

    def claim(self, attempt, pid=1, text=None):
        """An open claim of submission 2."""
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        lease = {"format": "kjudge-lease/1", "attempt": attempt, "seconds": 120,
                 "taken": "2026-11-30T00:00:00Z",
                 "holder": {"host": "here", "boot_id": boot, "pid": pid, "start_ticks": 1,
                            "pid_namespace": os.stat("/proc/self/ns/pid").st_ino}}
        folder = "results/submissions/2/claims/%d" % attempt
        self.write(folder + "/lease.json", json.dumps(lease) if text is None else text)
        os.mkdir(self.path(folder, "work"))

    def secret(self, evaluation, of):
        """As judge writes it, of an evaluation with this UUID."""
        self.write("results/" + evaluation + "/secret.json", json.dumps(
            {"format": "kjudge-secret/1", "evaluation": of, "secret": "0" * 64, "order_seed": "0" * 16}))

    def keep(self, more):
        """The challenge, with something more in it than was judged."""
        folder = self.path("results/challenges/softmax/1")
        shutil.copytree(os.path.join(os.path.dirname(GOLDEN), "challenge"), folder)
        with open(os.path.join(folder, "TASK.md"), "a") as file:
            file.write(more)

    def test_a_secret_that_is_right_is_no_damage(self):
        self.fresh()
        evaluation = "submissions/1/evaluations/1"
        with open(self.path("results", evaluation, "result.json")) as file:
            self.secret(evaluation, json.load(file)["id"])
        self.assertEqual(self.findings(0), [])

    def findings(self, status):
        out, _ = self.run_kjudge("fsck", "results", "--json", status=status)
        return [(f["kind"], os.path.relpath(f["path"], "results"), f["what"], f["advice"])
                for f in json.loads(out)["findings"]]

    def test_whole(self):
        self.fresh()
        before = {folder: sorted(names + folders) for folder, folders, names in os.walk(GOLDEN)}
        out, err = self.run_kjudge("fsck", "results")
        self.assertEqual(out, "")
        self.assertIn("2 submissions, 1 evaluations: all are whole", err)
        self.assertEqual(self.findings(0), [])
        os.remove(self.path("results/scores.index"))
        after = {folder.replace(self.path("results"), GOLDEN): sorted(names + folders)
                 for folder, folders, names in os.walk(self.path("results"))}
        self.assertEqual(after, before)

    def test_every_damage_is_found(self):
        evaluation = "submissions/1/evaluations/1"
        cases = (
            ("a byte of a result", lambda: self.change(evaluation + "/result.json", b'"method"', b'"m\xffthod"'),
             evaluation + "/result.json", "not ranked, and not judged again", ".damaged-1"),
            ("a cut result", lambda: os.truncate(self.path("results", evaluation, "result.json"), 1000),
             evaluation + "/result.json", "not ranked, and not judged again", ".damaged-1"),
            ("another's result", lambda: self.change(
                evaluation + "/result.json", b'"submission_sha256": "7', b'"submission_sha256": "8'),
             evaluation + "/result.json", "of other files than were handed in", "backup"),
            ("a byte of a recording", lambda: self.change(evaluation + "/bundle.kjb", b"softmax", b"sofTmax"),
             evaluation + "/bundle.kjb", "cannot be read", "backup"),
            ("another recording", lambda: self.change(
                evaluation + "/result.json", b'"method"', b'"bundle_sha256": "%s", "method"' % (b"0" * 64)),
             evaluation + "/bundle.kjb", "not the recording that was measured", "backup"),
            ("no recording", lambda: os.remove(self.path("results", evaluation, "bundle.kjb")),
             evaluation + "/bundle.kjb", "is missing", "backup"),
            ("no log", lambda: os.remove(self.path("results", evaluation, "log.txt")),
             evaluation + "/log.txt", "is missing", "touch"),
            ("a verdict is gone", lambda: os.rename(self.path("results", evaluation),
                                                    self.path("results/submissions/1/evaluations/2")),
             evaluation, "a verdict was removed", "backup"),
            ("files changed", lambda: self.change("submissions/2/files/submission.py", b"import", b"Import"),
             "submissions/2/files", "not what was handed in", "backup"),
            ("files are gone", lambda: os.remove(self.path("results/submissions/2/files/submission.py")),
             "submissions/2/files", "no submission.py", "backup"),
            ("an identity", lambda: self.change("submissions/2/submission.json", b'"run"', b'"rum"'),
             "submissions/2/submission.json", "is not judged, shown or ranked", "backup"),
            ("a stranger", lambda: self.write("results/submissions/notes.txt", ""),
             "submissions/notes.txt", "kjudge makes no such name", "move it"),
            ("a lease", lambda: self.claim(1, text="{"),
             "submissions/2/claims/1/lease.json", "so it waits until this is a day old", "to dropped"),
            ("two claims", lambda: (self.claim(1), self.claim(2)),
             "submissions/2/claims/1/work", "two claims are open", "to dropped"),
            ("a bar", lambda: self.write("results/bars/1/bar.json", '{"format": "kjudge-bar/1"}'),
             "bars/1/bar.json", "as if it had not been said", "say it again"),
            ("an invalidation", lambda: self.write("results/invalidations/1/invalidation.json", "{"),
             "invalidations/1/invalidation.json", "as if it had not been said", "backup"),
            ("a play-off without its record", lambda: os.makedirs(self.path("results/playoffs/1/results")),
             "playoffs/1/playoff.json", "No such file", "backup"),
            ("a stranger among records", lambda: (self.run_kjudge(
                "bar", "add", "results", "--name", "x", "--variant", "softmax", "--speedup", "2", "--source", "s"),
                self.write("results/bars/1/notes.txt", "")),
             "bars/1/notes.txt", "kjudge makes no such name", "move it"),
            ("a challenge", lambda: self.write("results/challenges/softmax/1/challenge.json", "{"),
             "challenges/softmax/1", "no dtypes and no target", "remove it"),
            ("a secret", lambda: self.write("results/" + evaluation + "/secret.json", "{"),
             evaluation + "/secret.json", "cannot be made again", "backup"),
            ("another's secret", lambda: self.secret(evaluation, "another"),
             evaluation + "/secret.json", "of another evaluation", "backup"),
            ("a hash of kernels", lambda: self.write("results/" + evaluation + "/kernels.sha256", "no hash\n"),
             evaluation + "/kernels.sha256", "is no SHA-256", "remove it"),
            ("a profile", lambda: self.write("results/" + evaluation + "/profile-a.json", "{}"),
             evaluation + "/profile-a.json", "it is not shown", "backup"),
            ("a log", lambda: self.write("results/" + evaluation + "/log.txt", "another\n"),
             evaluation + "/log.txt", "not the log that result.json has", "backup"),
            ("how far it is", lambda: (self.claim(1, pid=os.getpid()),
                                       self.write("results/submissions/2/claims/1/running.json", "{")),
             "submissions/2/claims/1/running.json", "nobody can show how far it is", "nothing"),
            ("a token", lambda: self.write("results/tokens/%s.json" % ("0" * 64), "{"),
             "tokens/%s.json" % ("0" * 64), "good for nothing", "another token"),
            ("a token of another name", lambda: (
                self.run_kjudge("token", "add", "ada", "--results", "results"),
                os.rename(self.path("results/tokens", os.listdir(self.path("results/tokens"))[0]),
                          self.path("results/tokens/%s.json" % ("0" * 64)))),
             "tokens/%s.json" % ("0" * 64), "says it is of ada", "another token"),
            ("a folder that is a file", lambda: self.write("results/bars", ""), "bars", "nothing in it", "backup"),
            ("a stranger among blobs", lambda: self.write("results/blobs/notes.txt", ""),
             "blobs/notes.txt", "kjudge makes no such name", "move it"),
            ("another challenge", lambda: self.keep("2"),
             "challenges/softmax/1", "not what results of it were judged by", "remove it"),
            ("scores that are none", lambda: (self.run_kjudge("rank", "results"),
                                              self.change("scores.index", b"softmax", b"sofTmax")),
             "scores.index", "not what was written", "written anew"),
            ("a folder in place of the scores", lambda: os.mkdir(self.path("results/scores.index")),
             "scores.index", "not what was written", "remove that folder"),
        )
        for what, harm, path, explained, advice in cases:
            with self.subTest(what):
                self.fresh()
                harm()
                damage = [f for f in self.findings(3) if f[0] == "damage"]
                self.assertEqual([f[1] for f in damage], [path])
                self.assertIn(explained, damage[0][2])
                self.assertIn(advice, damage[0][3])

    def test_index_that_lies_is_written_anew(self):
        self.fresh()
        self.findings(0)
        result = "submissions/1/evaluations/1/result.json"
        before = os.stat(self.path("results", result))
        self.change(result, b'"node": "', b'"node": "x')
        os.utime(self.path("results", result), ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual([f[1:3] for f in self.findings(3)],
                         [("scores.index", "did not say what the files say")])
        self.assertEqual(self.findings(0), [])

    def test_what_was_left_over_is_no_damage(self):
        self.fresh()
        self.claim(1, pid=1 << 29)
        os.mkdir(self.path("results/submissions/2/claims/1/dropped"))
        os.mkdir(self.path("results/submissions/.new-0123"))
        self.assertEqual({f[:2] for f in self.findings(0)},
                         {("left over", "submissions/.new-0123"),
                          ("left over", "submissions/2/claims/1/work"),
                          ("left over", "submissions/2/claims/1/dropped")})

    def test_advice_for_a_bad_result_helps(self):
        self.fresh()
        self.write("results/submissions/1/evaluations/1/result.json", "{")
        os.rename(self.path("results/submissions/1/evaluations/1"),
                  self.path("results/submissions/1/evaluations/.damaged-1"))
        self.assertEqual(self.findings(0), [])
        _, err = self.run_kjudge("judge", "results", "--unsafe", "--challenge",
                                 os.path.join(os.path.dirname(GOLDEN), "challenge"))
        self.assertIn("1 ada: accepted", err)

    def test_another_version(self):
        self.fresh()
        self.write("results/store.json", '{"format": "kjudge-store/3"}')
        for command in (["fsck", "results"], ["rank", "results"]):
            _, err = self.run_kjudge(*command, status=3)
            self.assertIn('store.json: format: expected "kjudge-store/2"', err)


if __name__ == "__main__":
    _kjudge.main()
