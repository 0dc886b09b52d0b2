# SPDX-License-Identifier: Apache-2.0
"""kjudge fsck: what is missing from a results directory, or was changed, is known by what its other files say."""

import hashlib
import json
import os
import shutil

import _kjudge

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "results-directory-v2", "results")


def hashed(folder, name):
    return "%s/%s.json" % (folder, hashlib.sha256(name.encode()).hexdigest())


class FsckRelations(_kjudge.Case):
    def fresh(self):
        """Of ada, who is the organizer's, and of ben, who has a token."""
        shutil.rmtree(self.path("results"), ignore_errors=True)
        shutil.copytree(GOLDEN, self.path("results"))
        os.remove(self.path("results/index.json"))
        self.set(hashed("runs", "ben"), owner="ben")
        self.numbers = {"ada": [], "ben": []}
        for number in (1, 2, 3):
            identity = self.read("submissions/%d/submission.json" % number)
            self.numbers[identity["run"]].append(number)
            if identity["run"] == "ben":
                self.set("submissions/%d/submission.json" % number, owner="ben")

    def read(self, name):
        with open(self.path("results", name)) as file:
            return json.load(file)

    def set(self, name, **fields):
        self.write("results/" + name, json.dumps(dict(self.read(name), **fields)))

    def remove(self, name):
        shutil.rmtree(self.path("results", name))

    def findings(self, *more, status=3):
        out, self.said = self.run_kjudge("fsck", "results", "--json", *more, status=status)
        return {os.path.relpath(f["path"], "results"): f["what"] + "\n" + f["advice"]
                for f in json.loads(out)["findings"] if f["kind"] == "damage"}

    def assert_found(self, found, path, *texts):
        self.assertEqual(list(found), [path])
        for text in texts:
            self.assertIn(text, found[path])

    def test_whole(self):
        self.fresh()
        self.assertEqual(self.findings(status=0), {})

    def test_a_submission_that_is_gone(self):
        self.fresh()
        self.remove("submissions/2")
        self.assert_found(self.findings(), "submissions/2", "is missing, though there is 3", "backup")

    def test_the_last_submission_is_gone(self):
        self.fresh()
        self.findings(status=0)  # which writes the index
        self.remove("submissions/3")
        for look in ("first", "again"):
            with self.subTest(look):
                self.assert_found(self.findings(), "submissions/3", "scores.index knew it")

    def test_a_submission_that_a_record_names_is_gone(self):
        self.fresh()
        record = self.read("rejudgements/1/rejudgement.json")
        record["evaluations"][0]["submission"] = 5
        self.set("rejudgements/1/rejudgement.json", evaluations=record["evaluations"])
        found = self.findings()
        self.assertEqual(list(found), ["submissions/4", "submissions/5"])
        self.assertIn("rejudgement 1 names it", found["submissions/5"])

    def test_a_verdict_that_is_gone_while_its_claim_is_there(self):
        for left in (0, 1):
            with self.subTest(left=left):
                self.fresh()
                self.set("submissions/1/claims/2/lease.json", evaluation=2)
                self.set("submissions/1/claims/1/lease.json", evaluation=1)
                self.findings(status=0)
                for number in range(left + 1, 3):
                    self.remove("submissions/1/evaluations/%d" % number)
                found = self.findings()
                self.assertEqual(list(found), ["submissions/1/evaluations/%d" % n for n in range(left + 1, 3)])
                self.assertIn("claim 2 stored it", found["submissions/1/evaluations/2"])
        # As fsck advises for one that is damaged.
        self.fresh()
        self.set("submissions/1/claims/2/lease.json", evaluation=2)
        os.rename(self.path("results/submissions/1/evaluations/2"),
                  self.path("results/submissions/1/evaluations/.damaged-2"))
        self.assertEqual(self.findings(status=0), {})

    def test_a_verdict_that_is_gone_with_its_claim(self):
        self.fresh()
        self.findings(status=0)  # which writes the index
        for folder in ("claims", "evaluations"):
            self.remove("submissions/3/" + folder)
        self.run_kjudge("rank", "results")
        for look in ("first", "again"):
            with self.subTest(look):
                self.assert_found(self.findings(), "submissions/3/evaluations/2", "scores.index knew it", "backup")

    def test_a_verdict_that_a_record_names_is_gone_with_its_claim(self):
        self.fresh()
        self.findings(status=0)
        for folder in ("claims", "evaluations"):
            self.remove("submissions/2/" + folder)
        os.remove(self.path("results/scores.index"))
        found = self.findings()
        self.assertEqual(list(found), ["submissions/2/evaluations/1", "submissions/2/evaluations/2"])
        self.assertIn("rejudgement 1 names it", found["submissions/2/evaluations/1"])
        self.assertIn("playoff 1 names it", found["submissions/2/evaluations/2"])

    def test_a_record_that_is_gone(self):
        self.fresh()
        self.remove("bars/1")
        self.assert_found(self.findings(), "bars/1", "is missing, though there is 2", "backup")
        os.mkdir(self.path("results/bars/.damaged-1"))
        self.assertEqual(self.findings(status=0), {})
        for kind in ("invalidation", "playoff", "rejudgement"):
            with self.subTest(kind):
                self.fresh()
                self.findings(status=0)  # which writes the index
                self.remove(kind + "s")
                for look in ("first", "again"):
                    found = self.findings()
                    self.assertIn("scores.index knew it", found[kind + "s/1"])

    def test_what_cannot_be_looked_at_hides_no_other_damage(self):
        for path in ("submissions/1/files", "submissions/1/evaluations/1",
                     "submissions/1/evaluations/1/bundle.kjb", "submissions/1/claims/1", hashed("runs", "ada"),
                     "challenges/softmax/1"):
            with self.subTest(path):
                self.fresh()
                full = self.path("results", path)
                shutil.rmtree(full) if os.path.isdir(full) else os.remove(full)
                os.symlink(os.path.basename(full), full)  # as a disk that fails
                self.write("results/submissions/2/submission.json", "{}")
                self.write("results/bars/2/bar.json", "{}")
                found = self.findings()
                self.assertTrue({"submissions/2/submission.json", "bars/2/bar.json"} < set(found), found)
                self.assertTrue([p for p in found if p.startswith(path)], found)

    def test_who_could_not_be_replayed_is_gone(self):
        self.fresh()
        record = self.read("playoffs/1/playoff.json")
        absent = dict(record["others"][0], submission=4)
        self.set("playoffs/1/playoff.json", absent=[absent])
        self.assert_found(self.findings(), "submissions/4", "playoff 1 names it")

    def test_a_folder_of_a_high_number_is_one_finding(self):
        self.fresh()
        os.mkdir(self.path("results/submissions/20261130"))
        found = self.findings()
        self.assertEqual(sorted(found), ["submissions/20261130/files", "submissions/20261130/submission.json",
                                         "submissions/4"])
        self.assertIn("with the 20261125 after it, though there is 20261130", found["submissions/4"])

    def test_all_of_runs_is_gone_and_restored(self):
        self.fresh()
        before = {name: self.read(name) for name in (hashed("runs", "ada"), hashed("runs", "ben"))}
        self.remove("runs")
        found = self.findings()
        self.assertEqual(set(found), set(before))
        self.assertIn("whoever hands in first gets the run", found[hashed("runs", "ben")])
        self.assertIn("--restore-runs", found[hashed("runs", "ben")])
        self.assertEqual(self.findings("--restore-runs", status=0), {})
        self.assertIn("run ben was missing; written anew: it belongs to ben", self.said)
        self.assertIn("run ada was missing; written anew: it belongs to the organizer", self.said)
        for name, run in before.items():
            now = self.read(name)
            self.assertEqual((now["name"], now.get("owner")), (run["name"], run.get("owner")))
        self.findings("--restore-runs", status=0)
        self.assertNotIn("written anew", self.said)

    def test_the_owner_of_a_run_was_changed(self):
        self.fresh()
        self.set(hashed("runs", "ben"), owner="ada")
        self.assert_found(self.findings(), hashed("runs", "ben"), "says that the run ben is of ada", "is of ben")

    def test_the_owner_of_a_submission_was_changed(self):
        self.fresh()
        first = self.numbers["ben"][0]
        shutil.copytree(self.path("results/submissions/%d" % first), self.path("results/submissions/4"))
        self.set("submissions/4/submission.json", owner="ada", id="of-the-fourth")
        self.assert_found(self.findings(), "submissions/4/submission.json", "is of ada, but its run ben is of ben")
        self.set("submissions/4/submission.json", owner="Ben")
        self.assertEqual(self.findings(status=0), {})

    def test_all_of_tokens_is_gone(self):
        self.fresh()
        self.remove("tokens")
        self.assert_found(self.findings(), hashed("tokens", "ben"), "though ben handed in", "kjudge token add")

    def test_all_of_challenges_is_gone(self):
        self.fresh()
        self.remove("challenges")
        self.assert_found(self.findings(), "challenges/softmax/1", "submission 1 was judged with it", "keeps it again")

    def test_two_submissions_have_one_id(self):
        self.fresh()
        shutil.copytree(self.path("results/submissions/1"), self.path("results/submissions/4"))
        self.assert_found(self.findings(), "submissions/4/submission.json", "has the id of submission 1")

    def test_a_hash_of_kernels_is_another_recordings(self):
        self.fresh()
        file = "submissions/1/evaluations/1/kernels.sha256"
        self.write("results/" + file, "0" * 64 + "\n")
        self.assert_found(self.findings(), file, "is not of what the recording launches", "remove it")
        os.remove(self.path("results", file))
        self.assertEqual(list(self.findings()), ["scores.index"])  # which had it from there
        self.assertEqual(self.findings(status=0), {})

    def test_the_version_is_gone(self):
        self.fresh()
        os.remove(self.path("results/store.json"))
        self.assert_found(self.findings(), "store.json", "is missing")


if __name__ == "__main__":
    _kjudge.main()
