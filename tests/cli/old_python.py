# SPDX-License-Identifier: Apache-2.0
"""A python3 that is too old is told as that, by whoever starts it, and blames no submission."""

import ast
import glob
import json
import os
import re
import sys

import _kjudge

HARNESS = os.path.join(_kjudge.ROOT, "harness")
# What PATH leads to: this test's Python, which says that it is 3.8.
OLD = """#!%s
import os, runpy, sys
sys.version_info = (3, 8, 1, "final", 0)
arguments = [one for one in sys.argv[1:] if one != "-B"]
if arguments == ["--version"]:
    print("Python 3.8.1")
elif arguments[0] == "-c":
    sys.argv = ["-c"] + arguments[2:]
    exec(arguments[1])
else:
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
""" % sys.executable


class OldPython(_kjudge.Case):
    def old(self):
        """A PATH whose python3 is old."""
        os.chmod(self.write("bin/python3", OLD), 0o755)
        return self.path("bin") + os.pathsep + os.environ["PATH"]

    def test_a_capture(self):
        out, _ = self.run_kjudge("selftest", self.write("right.py", _kjudge.RIGHT), "--challenge",
                                 self.small_challenge(), "--json", status=5, PATH=self.old())
        result = json.loads(out)
        self.assertEqual(result["verdict"], "judge_error")
        self.assertRegex(result["message"], r"python3 is .*, Python 3\.8; kjudge needs 3\.9 or newer: have PATH lead")

    def test_a_challenges_own_python(self):
        """Started where nothing is captured, too."""
        for name in ("reference", "inputs", "check"):
            with open(os.path.join(HARNESS, "call_%s.py" % name)) as file:
                imports = re.findall(r"(?m)^(?:import|from) (\w+)", file.read())
            self.assertEqual(imports[0], "_python", name)

    def test_doctor(self):
        out, _ = self.run_kjudge("doctor", "--json", status=5, PATH=self.old())
        finding = {f["name"]: f for f in json.loads(out)["findings"]}["python3"]
        self.assertEqual(finding["state"], "failure")
        self.assertIn("kjudge needs 3.9 or newer", finding["advice"])

    def test_a_judge_in_a_sandbox(self):
        if self.sandbox_missing():
            self.skipTest(self.sandbox_missing())
        self.write("handed_in/right.py", _kjudge.RIGHT)
        _, err = self.run_kjudge("judge", self.path("results"), "--from", self.path("handed_in"), "--challenge",
                                 self.small_challenge(), status=5, PATH=self.old())
        self.assertIn("Python 3.8; kjudge needs 3.9 or newer", err)

    def test_old_ones_can_read_what_tells_them(self):
        """Else it is a syntax error that they tell."""
        for name in ["_python.py", "harness.py", "submit.py", "capture.py"] + [
                os.path.basename(path) for path in glob.glob(os.path.join(HARNESS, "call_*.py"))]:
            with open(os.path.join(HARNESS, name)) as file:
                ast.parse(file.read(), name, feature_version=(3, 6))


if __name__ == "__main__":
    _kjudge.main()
