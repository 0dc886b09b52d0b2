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

    def test_missing_files_are_a_failure(self):
        out, _ = self.run_kjudge("doctor", status=5, KJUDGE_LIBRARY_DIR=self.path("nowhere"))
        self.assertIn("failure: kjudge's files", out)
        self.assertIn("install kjudge again", out)


if __name__ == "__main__":
    _kjudge.main()
