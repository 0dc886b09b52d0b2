# SPDX-License-Identifier: Apache-2.0
"""The two halves of an evaluation by themselves, and what a bundle holds."""

import json

import _kjudge


class CaptureAndReplay(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()

    def capture(self, *arguments):
        return self.run_kjudge("capture", *arguments, "--challenge", self.challenge)

    def test_replay_of_captured_bundles(self):
        right = self.write("right.py", _kjudge.RIGHT)
        self.capture(right, "-o", "s.kjb")
        self.capture("--role", "baseline", "-o", "b.kjb")
        self.capture("--role", "reference", "-o", "r.kjb")
        for given in ([], ["--baseline", "b.kjb", "--reference", "r.kjb"]):
            out, _ = self.run_kjudge("replay", "--submission", "s.kjb", *given, "--challenge",
                                     self.challenge, "--json")
            result = json.loads(out)
            self.assertEqual(result["verdict"], "accepted")
            self.assertTrue(result["score"]["ranked"])
        self.assert_nothing_left()

    def test_dump(self):
        right = self.write("right.py", _kjudge.RIGHT)
        self.capture(right, "-o", "s.kjb")
        text, _ = self.run_kjudge("dump", "s.kjb")
        self.assertIn("softmax", text)
        out, _ = self.run_kjudge("dump", "s.kjb", "--json")
        bundle = json.loads(out)
        self.assertEqual([s["name"] for s in bundle["shapes"]], ["64x48", "test-3x5"])
        node = bundle["shapes"][0]["nodes"][0]
        self.assertEqual((node["kind"], node["name"], node["grid"]), ("kernel", "softmax", [64, 1, 1]))

    def test_bundle_of_another_challenge(self):
        right = self.write("right.py", _kjudge.RIGHT)
        self.capture(right, "-o", "s.kjb")
        _, err = self.run_kjudge("replay", "--submission", "s.kjb", "--challenge", "softmax", status=3)
        self.assertIn("s.kjb", err)
        self.assertIn("64x48", err)

    def test_same_submission_same_recording(self):
        right = self.write("right.py", _kjudge.RIGHT)
        hashes = []
        for name in ("1.kjb", "2.kjb"):
            self.capture(right, "-o", name)
            out, _ = self.run_kjudge("dump", name, "--json")
            hashes.append([s["output_hashes"] for s in json.loads(out)["shapes"]])
        self.assertEqual(hashes[0], hashes[1])

    def test_verdict_without_a_bundle(self):
        bad = self.write("bad.py", "raise ValueError('no')\n")
        out, _ = self.run_kjudge("capture", bad, "-o", "s.kjb", "--challenge", self.challenge, "--json",
                                 status=1)
        outcome = json.loads(out)
        self.assertEqual((outcome["verdict"], outcome["bundle"]), ("runtime_error", ""))
        self.assertFalse(__import__("os").path.exists(self.path("s.kjb")))

    def test_a_fault_in_the_captures_own_replay_names_the_kernel(self):
        # Right in both calls outside of the capture.
        bad = self.write("bad.py", _kjudge.RIGHT.replace("rows, cols)", "rows << 30 * (calls.count(rows) // 2), cols)")
                         .replace("def kernel_fn", "calls = []\n\n\ndef kernel_fn") + "    calls.append(rows)\n")
        out, _ = self.run_kjudge("capture", bad, "-o", "s.kjb", "--challenge", self.challenge, "--json",
                                 status=1)
        outcome = json.loads(out)
        self.assertEqual(outcome["verdict"], "gpu_fault", outcome["message"])
        self.assertIn("shape 64x48: replay of the captured graph, kernel softmax (node 0): ", outcome["message"])


if __name__ == "__main__":
    _kjudge.main()
