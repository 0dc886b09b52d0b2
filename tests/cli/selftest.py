# SPDX-License-Identifier: Apache-2.0
"""A contestant's turn: the verdict and the times of one submission."""

import os
import re

import _kjudge


class Selftest(_kjudge.Case):
    def test_right_submission_is_accepted(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        result = self.evaluate(right, "--challenge", challenge)
        self.assertEqual(result["format"], "kjudge-result/1")
        self.assertEqual(result["verdict"], "accepted")
        self.assertEqual([(s["name"], s["verdict"]) for s in result["shapes"]],
                         [("64x48", "accepted"), ("test-3x5", "accepted")])
        self.assertTrue(result["score"]["ranked"], result["score"])
        self.assertEqual(result["trust"], "process")
        self.assert_nothing_left()

    def test_which_challenge_is_taken_where_none_is_named(self):
        challenge = self.small_challenge()
        right = self.write("challenge/mine/right.py", _kjudge.RIGHT)
        _, err = self.run_kjudge("selftest", right, "--pairs", "1")
        self.assertIn("kjudge: taking softmax, version 1, in challenge\n", err)
        os.mkdir(self.path("elsewhere"))
        process = self.start("selftest", right, "--pairs", "1", cwd=self.path("elsewhere"))
        self.assertIn("kjudge: taking softmax, version 1, in %s\n" % challenge, process.communicate()[1])
        _, err = self.run_kjudge("selftest", right, "--pairs", "1", "--challenge", challenge)
        self.assertNotIn("taking", err)
        _, err = self.run_kjudge("selftest", self.write("right.py", _kjudge.RIGHT), status=2)
        self.assertIn("which challenge? There is no challenge.json beside or above", err)  # of several packages

    def test_cuda_needs_a_gpu(self):
        challenge = self.small_challenge()
        file = self.write("mine.cu", "nothing that compiles\n")
        folder = os.path.dirname(self.write("folder/submission.cu", "nothing that compiles\n"))
        for submission in (file, folder):
            result = self.evaluate(submission, "--challenge", challenge, status=1)
            self.assertEqual(result["verdict"], "build_error")
            self.assertIn("submission.cu is CUDA C++ and needs a GPU", result["message"])

    def test_no_submission_makes_a_judge_error(self):
        """Which would be judged again, and end a night's judging with status 5."""
        challenge = self.small_challenge()
        imitated = _kjudge.RIGHT + """
import os, sys
sys.stderr.write('  File "/kjudge/harness/capture.py", line 7, in main\\n')
sys.stderr.flush()
os._exit(1)
"""
        status = _kjudge.RIGHT + """
import json, os, sys
with open(sys.argv[1]) as file:
    path = json.load(file)["status"]
with open(path, "w") as file:
    json.dump({"format": "kjudge-capture-status/1", "verdict": "judge_error", "message": "broken"}, file)
os._exit(1)
"""
        broken = _kjudge.RIGHT + """
import json
json.dump = None
"""
        for name, source, words in (("imitated", imitated, "ended early: exit status 1"),
                                    ("status", status, "broken"),
                                    ("forbidden", "import os, signal\nos.kill(os.getpid(), signal.SIGSYS)\n",
                                     "system call that no submission may make"),
                                    ("broken", broken, "ended early: exit status 1")):
            with self.subTest(name):
                result = self.evaluate(self.write(name + ".py", source), "--challenge", challenge, status=1)
                self.assertEqual(result["verdict"], "runtime_error")
                self.assertIn(words, result["message"])
                self.assertNotIn("starts here", result["log"])

    def test_no_message_forges_a_line_of_the_verdict(self):
        challenge = self.small_challenge()
        forged = ("verdict: accepted", "score: 1000.000x [1000.000, 1000.000]")
        source = _kjudge.RIGHT.replace("def prepare(ctx):\n", "def prepare(ctx):\n    raise ValueError(%r)\n" %
                                       "\n".join(("x",) + forged))
        mine = self.write("mine.py", source)
        said = {}
        said["selftest"], log = self.run_kjudge("selftest", mine, "--challenge", challenge, status=1)
        self.assertNotIn(forged[0], log.splitlines())
        self.write("result.json", self.run_kjudge("selftest", mine, "--challenge", challenge, "--json",
                                                  status=1)[0])
        said["show"] = self.run_kjudge("show", "./result.json")[0]
        said["capture"] = self.run_kjudge("capture", mine, "--challenge", challenge, "-o", self.path("b.kjb"),
                                          status=1)[0]
        for command, out in said.items():
            with self.subTest(command):
                self.assertRegex(out, "runtime_error: prepare raised ValueError: x\n  %s\n" % forged[0])
                for line in forged:
                    self.assertIn(line, out)
                    self.assertNotIn(line, out.splitlines())

    def test_table_on_stdout_and_no_progress_without_terminal(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        out, err = self.run_kjudge("selftest", right, "--challenge", challenge)
        self.assertEqual(err, "")
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^shape +baseline +submission +speedup +interval +verdict$")
        self.assertRegex(lines[1], r"^64x48 .* accepted$")
        self.assertIn("verdict: accepted", out)
        self.assertRegex(out, r"score: \d+\.\d{3}x \[\d+\.\d{3}, \d+\.\d{3}\]")

    def test_quick_turn_is_not_ranked(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        result = self.evaluate(right, "--challenge", challenge, "--shape", "64x48", "--pairs", "5")
        self.assertEqual(result["verdict"], "accepted")
        self.assertEqual([s["name"] for s in result["shapes"]], ["64x48"])
        self.assertFalse(result["score"]["ranked"])

    def test_challenge_beside_the_submission(self):
        challenge = self.small_challenge()
        out, _ = self.run_kjudge("selftest", os.path.join(challenge, "submission.py"), "--pairs", "1")
        self.assertIn("64x48", out)

    def test_baseline_is_captured_once(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        cache = self.path("cache", "kjudge")
        stamps = []
        for _ in range(2):
            self.evaluate(right, "--challenge", challenge, "--pairs", "1",
                          XDG_CACHE_HOME=self.path("cache"))
            stamps.append({n: os.stat(os.path.join(cache, n)).st_mtime_ns for n in os.listdir(cache)})
        self.assertEqual(len(stamps[0]), 2)  # baseline and reference
        self.assertEqual(stamps[0], stamps[1])

    def test_damaged_cache_is_made_again(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        arguments = [right, "--challenge", challenge, "--pairs", "1"]
        self.evaluate(*arguments, XDG_CACHE_HOME=self.path("cache"))
        cache = self.path("cache", "kjudge")
        for name in os.listdir(cache):
            with open(os.path.join(cache, name), "r+b") as file:
                file.truncate(100)
        self.evaluate(*arguments, XDG_CACHE_HOME=self.path("cache"))

    def test_eager_runs_without_a_recording(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT + "\nprint('hello from the host')\n")
        out, err = self.run_kjudge("selftest", right, "--challenge", challenge, "--eager")
        self.assertIn("nothing was checked or timed", out)
        self.assertIn("hello from the host", err)

    def test_output_cannot_drive_the_terminal(self):
        challenge = self.small_challenge()
        bad = self.write("bad.py", "raise ValueError('\\x1b[2J\\x9b31m')\n")
        out, err = self.run_kjudge("selftest", bad, "--challenge", challenge, status=1)
        self.assertIsNone(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", out + err), repr(out + err))


if __name__ == "__main__":
    _kjudge.main()
