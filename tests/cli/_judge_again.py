# SPDX-License-Identifier: Apache-2.0
"""For tests of what is judged more than once: a results directory of a small challenge, made and read."""

import json
import os
import shutil

import _kjudge


class Case(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()

    def judge(self, **runs):
        os.makedirs(self.path("from"), exist_ok=True)
        for run, code in runs.items():
            self.write("from/%s.py" % run, code)
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe")

    def json(self, *arguments, **more):
        out, self.said = self.run_kjudge(*arguments, "--json", **more)
        return json.loads(out)

    def result(self, *parts):
        with open(self.path("results", *map(str, parts), "result.json")) as file:
            return json.load(file)

    def evaluations(self, submission):
        return sorted(n for n in os.listdir(self.path("results/submissions/%d/evaluations" % submission))
                      if not n.startswith("."))

    def assert_whole(self):
        out, _ = self.run_kjudge("fsck", "results")
        self.assertEqual(out, "")

    def tie(self, groups, bundles=True):
        """Made to be judged twice, the second time with times that tie each group: {submission: slower}."""
        result = self.result("submissions/1/evaluations/1")
        for submission, slower in groups.items():
            top = self.path("results/submissions/%d/evaluations" % submission)
            shutil.copytree(os.path.join(top, "1"), os.path.join(top, "2"))
            if not bundles:
                for name in ("bundle.kjb", "kernels.sha256"):
                    os.remove(os.path.join(top, "2", name))
            own = self.result("submissions", submission, "evaluations/1")
            made = json.loads(json.dumps(result))
            for shape in made["shapes"]:
                for round_facts in shape["rounds"]:
                    for pair in round_facts["pairs"]:
                        for clocks in pair["submission"]:
                            clocks.update({name: time * slower for name, time in clocks.items()})
            made.update({"id": "another-%d" % submission},
                        **{field: own[field] for field in ("submission_sha256", "bundle_sha256")})
            with open(os.path.join(top, "2", "result.json"), "w") as file:
                json.dump(made, file)
            with open(os.path.join(top, "2", "secret.json")) as file:
                secret = json.load(file)
            with open(os.path.join(top, "2", "secret.json"), "w") as file:
                json.dump(dict(secret, evaluation=made["id"]), file)

    def made_earlier(self, *evaluations):
        """As if they had been judged long before what is judged next: results have whole seconds."""
        for evaluation in evaluations:
            result = self.result(evaluation)
            result["started"] = "2025-01-31T12:00:00Z"
            os.remove(self.path("results", evaluation, "result.json"))
            self.write("results/%s/result.json" % evaluation, json.dumps(result))
