# SPDX-License-Identifier: Apache-2.0
"""What an H200 recorded and measured is dumped and scored on a machine without a GPU."""

import json
import os

import _kjudge

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "h200")


class RecordedOnGpu(_kjudge.Case):
    def test_bundle_is_dumped(self):
        out, _ = self.run_kjudge("dump", os.path.join(GOLDEN, "softmax.kjb"))
        with open(os.path.join(GOLDEN, "softmax.dump")) as file:
            self.assertEqual(out, file.read())

    def test_bundle_is_not_replayed_here(self):
        _, err = self.run_kjudge("replay", "--submission", os.path.join(GOLDEN, "softmax.kjb"),
                                 "--challenge", "softmax", "--driver", "host", status=3)
        self.assertIn("was recorded on NVIDIA H200 (sm_90) with driver cuda 13.0", err)
        self.assertIn("capture it here", err)

    def test_result_is_scored(self):
        path = os.path.join(GOLDEN, "softmax.json")
        out, _ = self.run_kjudge("score", path, "--json")
        with open(path) as file:
            stored = json.load(file)
        self.assertEqual(stored["device"][:11], "NVIDIA H200")
        self.assertEqual(json.loads(out)["scores"][0]["speedup"], stored["score"]["speedup"])
        self.assertEqual(stored["shapes"][0]["name"], "4096x1024-float32")
        shown, _ = self.run_kjudge("show", path)
        self.assertIn("MHz", shown)


if __name__ == "__main__":
    _kjudge.main()
