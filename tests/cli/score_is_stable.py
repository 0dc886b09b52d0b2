# SPDX-License-Identifier: Apache-2.0
"""Scores of stored results: the same bytes from the same facts, without a device."""

import json
import os
import shutil

import _kjudge

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "result-v1")


class ScoreIsStable(_kjudge.Case):
    def test_same_bytes_as_ever(self):
        names = ["accepted.json", "judge_error.json", "refused.json", "wrong_result.json"]
        for name in names:
            shutil.copy(os.path.join(GOLDEN, name), self.folder)
        first, _ = self.run_kjudge("score", *names, "--json", status=1)
        second, _ = self.run_kjudge("score", *names, "--json", status=1, LC_ALL="C", TZ="Asia/Tokyo")
        self.assertEqual(first, second)
        scores = json.loads(first)["scores"]
        with open(os.path.join(GOLDEN, "accepted.json")) as file:
            stored = json.load(file)["score"]
        self.assertEqual(scores[0]["speedup"], stored["speedup"])
        self.assertEqual([s["verdict"] for s in scores],
                         ["accepted", "judge_error", "refused", "wrong_result"])

    def test_stored_score_is_not_believed(self):
        with open(os.path.join(GOLDEN, "accepted.json")) as file:
            result = json.load(file)
        honest, _ = self.run_kjudge("score", os.path.join(GOLDEN, "accepted.json"))
        result["score"]["speedup"] = 1000
        self.write("accepted.json", json.dumps(result))
        forged, _ = self.run_kjudge("score", "accepted.json")
        self.assertEqual(honest.splitlines()[1:], forged.splitlines()[1:])

    def test_show_json_is_the_file(self):
        path = os.path.join(GOLDEN, "accepted.json")
        out, _ = self.run_kjudge("show", path, "--json")
        with open(path) as file:
            self.assertEqual(out, file.read())


if __name__ == "__main__":
    _kjudge.main()
