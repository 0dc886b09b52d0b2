# SPDX-License-Identifier: Apache-2.0
"""A challenge may want each submission measured on several devices, each apart: what each makes of it is
told, and one recording is right on all of them. Here they are all this machine's processors."""

import json
import os
import subprocess

import _kjudge


class SeveralDevices(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.environment["KJUDGE_HOST_DEVICES"] = "3"

    def test_each_is_told_apart(self):
        work = {"arch": "x86_64", "dtype": "float32", "dims": {"rows": 64, "cols": 48}, "read_bytes": 10 ** 9}
        self.small_challenge(gpus_per_evaluation=2, shapes=[work], cache="cold", rates=[
            {"device": "device 1", "bytes_per_s": 1e9}, {"device": "device 2", "bytes_per_s": 4e9}])
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        arguments = [] if not self.sandbox_missing() else ["--unsafe"]
        self.run_kjudge("judge", "results", "--from", "handed_in", "--challenge", "challenge", "--device", "1",
                        *arguments)
        with open(self.path("results", "submissions", "1", "evaluations", "1", "result.json")) as file:
            result = json.load(file)
        self.assertEqual(result["verdict"], "accepted")
        self.assertEqual(len(result["others"]), 1)
        other = result["others"][0]
        self.assertEqual(other["verdict"], "accepted")
        self.assertEqual([len(s["rounds"]) for s in other["shapes"]], [6, 0])
        self.assertNotEqual(other["shapes"][0]["rounds"], result["shapes"][0]["rounds"])
        # Each against what it could have done itself.
        self.assertEqual([of["shapes"][0]["floor_ns"] for of in (result, other)], [1e9, 2.5e8])
        devices = result["score"]["devices"]
        self.assertEqual([d["device"] for d in devices], [result["device"], other["device"]])
        self.assertEqual(devices[0]["speedup"], result["score"]["speedup"])
        self.assertNotEqual(devices[1]["speedup"], result["score"]["speedup"])
        out, _ = self.run_kjudge("show", "1", "--results", "results")
        self.assertEqual(out.count("\non kjudge host driver: "), 2)
        self.run_kjudge("pages", "results", "--output", "site")
        with open(self.path("site", "evaluation", "1.html")) as file:
            self.assertIn("measured on each apart", file.read())

        self.run_kjudge("export", "results", "-o", "out.jsonl.zst")
        done = subprocess.run(["zstd", "-dc", self.path("out.jsonl.zst")], stdout=subprocess.PIPE, check=True)
        exported = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["result"] for line in exported if line["kind"] == "evaluation"], [result])

        # What was recorded on one device is replayed on another.
        again = os.path.join("results", "submissions", "1", "evaluations", "1")
        for device in ("0", "2"):
            self.run_kjudge("replay", "--challenge", "challenge", "--again", again, "--device", device,
                            "--pairs", "1")

    def test_too_few_devices_are_said_before_anything_is_judged(self):
        self.small_challenge(gpus_per_evaluation=4)
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        _, err = self.run_kjudge("judge", "results", "--from", "handed_in", "--challenge", "challenge",
                                 "--unsafe", status=2)
        self.assertIn("challenge softmax wants 4 devices of a kind for each evaluation, from device 0 on: "
                      "device 3: the host driver has 3 devices", err)


if __name__ == "__main__":
    _kjudge.main()
