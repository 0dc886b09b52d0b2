# SPDX-License-Identifier: Apache-2.0
"""doctor says what is there and, of what is not, what to do."""

import json
import os

import _kjudge


class Doctor(_kjudge.Case):
    def test_this_machine_can_judge(self):
        out, _ = self.run_kjudge("doctor", "--json")
        findings = {f["name"]: f for f in json.loads(out)["findings"]}
        self.assertEqual(findings["host driver"]["state"], "ok")
        self.assertEqual(findings["python3"]["state"], "ok")
        for name in ("Landlock", "seccomp", "user namespaces", "temporary files", "cache", "sandbox"):
            self.assertIn(name, findings)
        for finding in findings.values():
            self.assertEqual(finding["advice"] == "", finding["state"] == "ok", finding)

    def test_it_changes_nothing(self):
        self.run_kjudge("doctor", XDG_CACHE_HOME=self.path("absent", "cache"))
        self.assertFalse(os.path.exists(self.path("absent")))

    def test_measure_keeps_what_a_device_does(self):
        out, _ = self.run_kjudge("doctor", "--measure", "--driver", "host", "--seconds", "0", "--pairs", "1",
                                 "--json", XDG_CACHE_HOME=self.path("cache"))
        measured = json.loads(out)["measured"]
        self.assertEqual(measured["evaluations"], 1)
        for rate in ("read_bytes_per_s", "copied_bytes_per_s"):
            self.assertGreater(measured["rates"][rate], 1e6)
        self.assertEqual(sorted(measured["rates"]["operations_per_s"]), ["float32", "float64"])
        noise = measured["noise"]
        self.assertEqual([n["shape"] for n in noise],
                         ["copy-%dus" % us for us in (5, 10, 30, 100, 300, 1000)])
        self.assertLess(noise[0]["time_ns"], noise[-1]["time_ns"])  # 200 times the length
        self.assertNotIn("between", noise[0])  # one round
        kept = os.listdir(self.path("cache", "kjudge"))
        self.assertRegex(" ".join(kept), "^measured-[0-9a-f]{16}\\.json$")
        with open(self.path("cache", "kjudge", kept[0])) as file:
            self.assertEqual(json.load(file), measured)

    def test_variables_that_name_no_folder_are_a_finding(self):
        del self.environment["XDG_CACHE_HOME"]
        self.environment.pop("HOME", None)
        out, _ = self.run_kjudge("doctor", status=5)
        self.assertIn("failure: cache: neither XDG_CACHE_HOME nor HOME is an absolute path", out)
        self.assertIn("    set XDG_CACHE_HOME", out)
        _, err = self.run_kjudge("selftest", self.write("right.py", _kjudge.RIGHT), "--challenge",
                                 "softmax", status=2, HOME="relative", XDG_CACHE_HOME="relative")
        self.assertEqual(err, "kjudge: usage: neither XDG_CACHE_HOME nor HOME is an absolute path; "
                              "recordings of baselines are kept below it: set XDG_CACHE_HOME to a "
                              "folder that can be written\n")
        self.assertFalse(os.path.exists(self.path("relative")))
        out, _ = self.run_kjudge("doctor", status=5, TMPDIR=self.path("absent"))
        self.assertIn("failure: temporary files: ", out)

    def test_a_failure_is_mended_before_anything_is_measured(self):
        for more in ((), ("--json",)):
            out, err = self.run_kjudge("doctor", "--measure", "--driver", "host", *more, status=5,
                                       TMPDIR=self.path("absent"))
            self.assertEqual(err, "kjudge: nothing is measured: first mend what stands as a failure among "
                                  "the findings\n")
            self.assertNotIn("measured", out)

    def test_options_of_measuring_are_refused_without_it(self):
        for option, value in (("--seconds", "5"), ("--pairs", "5"), ("--device", "1"), ("--driver", "host")):
            out, err = self.run_kjudge("doctor", option, value, status=2)
            self.assertEqual((out, err), ("", "kjudge: usage: %s is for --measure, which is not given\n" %
                                          option))
        # What stands elsewhere is for whenever something is measured.
        config = self.write("config.toml", "[doctor]\nseconds = 5\npairs = 5\n")
        self.run_kjudge("doctor", KJUDGE_CONFIG=config, KJUDGE_DEVICE="0")

    def test_missing_files_are_a_failure(self):
        out, _ = self.run_kjudge("doctor", status=5, KJUDGE_LIBRARY_DIR=self.path("nowhere"))
        self.assertIn("failure: kjudge's files", out)
        self.assertIn("install kjudge again", out)


if __name__ == "__main__":
    _kjudge.main()
