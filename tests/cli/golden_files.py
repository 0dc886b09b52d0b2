# SPDX-License-Identifier: Apache-2.0
"""Results directories as versions 1 and 2 left them: ranked, shown, and the queue of the first judged."""

import json
import os
import shutil

import _kjudge

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "results-directory-v1")


def contents(folder):
    """{path: bytes} of every file."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class GoldenFiles(_kjudge.Case):
    def setUp(self):
        super().setUp()
        shutil.copytree(os.path.join(GOLDEN, "results"), self.path("results"))

    def test_is_read(self):
        out, err = self.run_kjudge("rank", "results", "--json")
        self.assertEqual(err, "")
        path = os.path.join(GOLDEN, "rank.json")
        if os.environ.get("KJUDGE_WRITE_GOLDEN"):
            with open(path, "w") as file:
                file.write(out)
        with open(path) as file:
            self.assertEqual(out, file.read())
        evaluation = "results/submissions/1/evaluations/1/"
        out, _ = self.run_kjudge("show", "1", "--results", "results", "--json")
        with open(self.path(evaluation, "result.json")) as file:
            self.assertEqual(out, file.read())
        out, _ = self.run_kjudge("dump", evaluation + "bundle.kjb")
        self.assertIn("node 0: kernel softmax of module 0\n", out)
        os.remove(self.path("results/scores.index"))
        self.assertEqual(contents(self.path("results")), contents(os.path.join(GOLDEN, "results")))

    def test_a_bundle_with_any_byte_changed_is_refused(self):
        """Also in what dump does not print: memory."""
        with open(os.path.join(_kjudge.ROOT, "tests", "golden", "bundle-v2", "rich.kjb"), "rb") as file:
            right = file.read()
        for at in range(0, len(right), 7):
            with open(self.path("changed.kjb"), "wb") as file:
                file.write(right[:at] + bytes([right[at] ^ 0xff]) + right[at + 1:])
            self.run_kjudge("dump", "changed.kjb", status=3)

    def test_what_waits_is_judged(self):
        challenge = os.path.join(GOLDEN, "challenge")
        # The one that is there already: it is known by the hash of its files, as version 1 made it.
        shutil.copy(self.path("results/submissions/1/files/submission.py"), self.write("from/ada.py", ""))
        before = contents(self.path("results"))
        _, err = self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge, "--unsafe")
        self.assertNotIn("ada", err)
        after = contents(self.path("results"))
        for path, old in before.items():
            self.assertEqual(after[path], old, path)
        new = "submissions/2/evaluations/1/"
        self.assertEqual(sorted(path for path in set(after) - set(before) 
                                if not path.startswith(("blobs/", "challenges/", "runs/"))),
                         ["scores.index", "store.json", "submissions/2/claims/1/lease.json"] +
                         [new + name for name in ("bundle.kjb", "kernels.sha256", "log.txt", "result.json",
                                              "secret.json")])
        self.assertIn(b'"verdict": "accepted"', after[new + "result.json"])


class ResultsDirectory2(_kjudge.Case):
    """With a file of every format that it may have, also running.json, which else goes with its judge."""
    GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "results-directory-v2")
    PRINTED = {"rank": ("rank", "results"), "history": ("rank", "results", "--history", "ben"),
               "bars": ("bar", "list", "results"), "invalidations": ("invalidate", "results", "--list"),
               "rejudgements": ("rejudge", "results", "--list"), "rejudgement": ("rejudge", "results", "--set", "1"),
               "tokens": ("token", "list", "--results", "results"), "fsck": ("fsck", "results")}

    def test_every_file_is_read(self):
        shutil.copytree(os.path.join(self.GOLDEN, "results"), self.path("results"))
        before = contents(self.path("results"))
        for name, arguments in self.PRINTED.items():
            with self.subTest(name):
                out, err = self.run_kjudge(*arguments, "--json")
                self.assertNotIn("results/", err)  # as what is said of a file that cannot be read
                path = os.path.join(self.GOLDEN, name + ".json")
                if os.environ.get("KJUDGE_WRITE_GOLDEN"):
                    with open(path, "w") as file:
                        file.write(out)
                with open(path) as file:
                    self.assertEqual(out, file.read())
        after = contents(self.path("results"))
        after.pop("scores.index")
        self.assertEqual(after, before)
        formats = {json.loads(text)["format"] for path, text in before.items() if path.endswith(".json")}
        self.assertEqual(formats, {"kjudge-%s" % name for name in (
            "bar/1", "challenge/1", "index/1", "invalidation/1", "lease/1", "playoff/1", "pruned/1", "rejudgement/1",
            "rejudgement-end/1", "result/1", "run/1", "running/1", "secret/1", "store/2", "submission/1", "token/1")})


if __name__ == "__main__":
    _kjudge.main()
