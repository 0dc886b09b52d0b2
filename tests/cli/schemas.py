# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas that are installed take and refuse what the program does, to another's validator."""

import copy
import glob
import json
import os

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
        rich = os.path.join(_kjudge.ROOT, "tests", "golden", "bundle-v1", "rich.kjb")
        kinds = {node["kind"] for shape in self.validate("dump", rich)["shapes"] for node in shape["nodes"]}
        self.assertEqual(kinds, {"kernel", "memset", "memcpy", "empty"})

    def test_files_of_a_results_directory(self):
        challenge = self.small_challenge()
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        self.run_kjudge("judge", "results", "--from", "handed_in", "--challenge", challenge, "--unsafe")
        folder = self.path("results", "submissions", "1")
        self.validator("kjudge-submission-1").validate(load(os.path.join(folder, "submission.json")))
        self.validator("kjudge-result-1").validate(
            load(os.path.join(folder, "evaluations", "1", "result.json")))
        self.validator("kjudge-secret-1").validate(
            load(os.path.join(folder, "evaluations", "1", "secret.json")))


if __name__ == "__main__":
    _kjudge.main()
