# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas that are installed take and refuse what the program does, to another's validator."""

import copy
import glob
import json
import os
import re

import _kjudge

try:
    import jsonschema
except ImportError:
    raise SystemExit("jsonschema is not installed: apt-get install python3-jsonschema")


def load(path):
    with open(path) as file:
        return json.load(file)


def faults(right):
    """(what, document) with one mistake in each: a value of a wrong kind, a field too many or less."""
    def places(value, path):
        yield path
        inner = (value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [])
        for key, item in inner:
            yield from places(item, path + [key])

    def at(document, path):
        for key in path:
            document = document[key]
        return document

    for path in places(right, []):
        if path[:1] == ["score"]:
            continue  # derived: not read
        value = at(right, path)
        if path:
            wrong = copy.deepcopy(right)
            at(wrong, path[:-1])[path[-1]] = None
            yield path + ["null"], wrong
        if isinstance(value, dict):
            wrong = copy.deepcopy(right)
            at(wrong, path)["Not a name"] = None
            yield path + ["unknown"], wrong


class Schemas(_kjudge.Case):
    def validator(self, name):
        schema = load(os.path.join(_kjudge.SHARE, "kjudge", "schema", name + ".json"))
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    def test_results(self):
        validator = self.validator("kjudge-result-1")
        golden = os.path.join(_kjudge.ROOT, "tests", "golden", "result-v1")
        for path in glob.glob(os.path.join(golden, "[!s]*.json")):
            validator.validate(load(path))
        tried = 0
        for what, wrong in faults(load(os.path.join(golden, "wrong_result.json"))):
            with self.subTest(what=what):
                self.assertFalse(validator.is_valid(wrong))
                path = self.write("wrong.json", json.dumps(wrong))
                _, err = self.run_kjudge("score", path, status=3)
                self.assertIn("wrong.json: ", err)
            tried += 1
        self.assertGreater(tried, 50)

    def test_challenges(self):
        validator = self.validator("kjudge-challenge-1")
        for path in glob.glob(os.path.join(_kjudge.ROOT, "packages", "*", "challenge.json")):
            validator.validate(load(path))
        path = os.path.join(self.small_challenge(), "challenge.json")
        right, tried = load(path), 0
        validator.validate(right)
        for what, wrong in faults(right):
            with self.subTest(what=what):
                self.assertFalse(validator.is_valid(wrong))
                with open(path, "w") as file:
                    json.dump(wrong, file)
                _, err = self.run_kjudge("capture", "--challenge", os.path.dirname(path), "-o", "x", status=3)
                self.assertIn("challenge.json: ", err)
            tried += 1
        self.assertGreater(tried, 30)

    def validate(self, *arguments, status=0):
        """What a command prints, against the schema of the format that it names."""
        document = json.loads(self.run_kjudge(*arguments, "--json", status=status)[0])
        self.validator(document["format"].replace("/", "-")).validate(document)
        return document

    def test_what_is_only_printed(self):
        challenge = self.small_challenge()
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        self.write("handed_in/ben.py", _kjudge.RIGHT)
        self.write("handed_in/cyd.py", _kjudge.RIGHT + "# the same kernels\n")
        self.write("handed_in/dan.zip", "no archive")
        judged = self.validate("judge", "results", "--from", "handed_in", "--challenge", challenge,
                               "--unsafe", status=1)
        self.assertEqual([(j.get("same_as"), j.get("same_kernels_as")) for j in judged["judged"]],
                         [(None, None), (1, None), (None, 1)])
        self.assertEqual(len(judged["refused"]), 1)
        dumped = self.validate("dump", self.path("results/submissions/1/evaluations/1/bundle.kjb"))
        self.assertEqual(dumped["shapes"][0]["nodes"][0]["name"], "softmax")
        self.validate("pack", challenge)
        rich = os.path.join(_kjudge.ROOT, "tests", "golden", "bundle-v2", "rich.kjb")
        kinds = {node["kind"] for shape in self.validate("dump", rich)["shapes"] for node in shape["nodes"]}
        self.assertEqual(kinds, {"kernel", "memset", "memcpy", "empty"})

    def test_every_document_that_a_command_prints(self):
        challenge = self.small_challenge()
        here = ["--challenge", challenge]
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        self.write("handed_in/ben.py", "# broken\n" + _kjudge.RIGHT.replace("kernel_fn", "kernel"))
        seen = set()

        def printed(*arguments, status=0):
            document = self.validate(*arguments, status=status)
            seen.add(document["format"])
            return document

        os.makedirs(self.path("results", "submissions"))
        self.assertEqual(printed("rank", "results")["entries"], [])  # before there is any
        outcome = printed("capture", self.path("handed_in/ada.py"), "-o", "ada.kjb", *here)
        self.assertIn("prepare", outcome["seconds"])
        self.assertEqual(outcome["bundle"], "ada.kjb")
        self.assertEqual(printed("capture", self.path("handed_in/ben.py"), "-o", "ben.kjb", *here, status=1)["bundle"],
                         "")
        printed("judge", "results", "--from", "handed_in", "--unsafe", *here, status=None)
        printed("selftest", self.path("handed_in/ada.py"), "--pairs", "1", *here)
        printed("replay", "--submission", "ada.kjb", "--pairs", "1", *here)
        printed("show", "1", "--results", "results")
        self.assertEqual([len(score["shapes"]) > 0 for score in printed("score", "results", status=1)["scores"]],
                         [True, False])
        printed("bar", "add", "results", "--name", "library", "--variant", "softmax", "--speedup", "2",
                "--source", "a paper", "--date", "2026-01-01")
        printed("bar", "add", "results", "--name", "times", "--variant", "softmax", "--times", "64x48=1.5",
                "--source", "a paper", "--measured")
        self.assertEqual([bar["name"] for bar in printed("bar", "list", "results")["bars"]], ["library", "times"])
        ranking = printed("rank", "results")
        self.assertEqual((len(ranking["entries"]), len(ranking["bars"])), (1, 2))
        self.assertEqual(len(printed("rank", "results", "--history", "ada")["evaluations"]), 1)
        printed("export", "results", "-o", "contest.jsonl.zst")
        printed("pages", "results", "-o", "pages")
        made = printed("rejudge", "results", "--run", "ada", "--reason", "new driver")
        self.assertIsNone(made["evaluations"][0]["new"])
        again = printed("rejudge", "results", "--set", str(made["set"]), "--judge", "--unsafe")
        self.assertEqual(again["evaluations"][0]["new"]["verdict"], "accepted")
        self.assertEqual(len(printed("rejudge", "results", "--list")["sets"]), 1)
        printed("playoff", "results", "--unsafe", *here)
        preview = printed("invalidate", "results", "--run", "ada", "--preview")
        self.assertNotIn("number", preview)
        self.assertGreaterEqual(len(preview["evaluations"]), 1)
        printed("invalidate", "results", "--run", "ada", "--reason", "a bug")
        self.assertEqual(len(printed("invalidate", "results", "--list")["invalidations"]), 1)
        ranking = printed("rank", "results")
        self.assertEqual((ranking["entries"], ranking["invalid"][0]["reason"]), ([], "a bug"))
        os.truncate(self.path("results/submissions/1/evaluations/1/result.json"), 10)
        self.assertGreaterEqual(len(printed("fsck", "results", status=3)["findings"]), 1)
        printed("doctor", status=None)
        self.assertRegex(printed("token", "add", "Ada", "--results", "results")["token"], r"^kjt_[0-9a-f]{64}$")
        printed("token", "add", "Grace", "--results", "results")
        self.run_kjudge("token", "revoke", "grace", "--results", "results")
        tokens = printed("token", "list", "--results", "results")["tokens"]
        self.assertEqual([(token["name"], "revoked" in token) for token in tokens], [("Ada", False), ("Grace", True)])
        server = self.start("serve", "results", *here, "--unsafe", "--listen", "127.0.0.1:0", "--json")
        serving = json.loads(server.stdout.readline())  # one line
        server.terminate()
        server.communicate(timeout=60)
        self.validator("kjudge-serving-1").validate(serving)
        # A format that is printed has a schema, and this test knows of it.
        self.assertGreaterEqual(seen, {"kjudge-%s/1" % name for name in (
            "added-token", "bars", "capture-outcome", "doctor", "exported", "fsck", "history", "invalidated", "invalidations",
            "judged", "pages", "played-off", "rank", "recorded", "rejudged", "rejudgements", "result", "scores", "tokens")})

    def test_every_format_that_the_source_names_has_a_schema(self):
        """Two requests to harness/, of the same kjudge, have none; submit is the name of a client."""
        named = set()
        for folder in ("lib", "cmd", "harness"):
            for parent, _, files in os.walk(os.path.join(_kjudge.ROOT, folder)):
                for name in files:
                    if name.endswith((".cc", ".h", ".py")):
                        with open(os.path.join(parent, name)) as file:
                            named |= set(re.findall(r'"kjudge-([a-z-]+/[0-9]+)"', file.read()))
        known = {name[len("kjudge-"):-len(".json")].rpartition("-") for name in
                 os.listdir(os.path.join(_kjudge.SHARE, "kjudge", "schema"))}
        self.assertEqual(named - {"%s/%s" % (name, version) for name, _, version in known},
                         {"capture/1", "python/1", "submit/1"})

    def test_files_of_a_results_directory(self):
        challenge = self.small_challenge()
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        self.run_kjudge("judge", "results", "--from", "handed_in", "--challenge", challenge, "--unsafe")
        self.write("handed_in/ben.py", "# broken\n" + _kjudge.RIGHT.replace("kernel_fn", "kernel"))
        self.run_kjudge("judge", "results", "--from", "handed_in", "--challenge", challenge, "--unsafe", status=None)
        self.run_kjudge("bar", "add", "results", "--name", "a", "--variant", "softmax", "--speedup", "2",
                        "--source", "b")
        self.run_kjudge("rejudge", "results", "--run", "ada", "--reason", "c")
        self.run_kjudge("rejudge", "results", "--set", "1", "--drop")
        self.run_kjudge("invalidate", "results", "--run", "ada", "--reason", "d")
        seen = set()
        for path in glob.glob(os.path.join(self.path("results"), "**", "*.json"), recursive=True):
            document = load(path)
            with self.subTest(path=os.path.relpath(path, self.folder)):
                self.validator(document["format"].replace("/", "-")).validate(document)
            seen.add(document["format"])
        self.assertGreaterEqual(seen, {
            "kjudge-bar/1", "kjudge-challenge/1", "kjudge-invalidation/1", "kjudge-lease/1", "kjudge-rejudgement/1",
            "kjudge-rejudgement-end/1", "kjudge-result/1", "kjudge-secret/1",
            "kjudge-store/2", "kjudge-submission/1"})


if __name__ == "__main__":
    _kjudge.main()
