# SPDX-License-Identifier: Apache-2.0
"""Every way to call it wrongly has its exit code, and says what to do."""

import json
import os
import shutil

import _kjudge


class ExitCodes(_kjudge.Case):
    def test_version(self):
        out, _ = self.run_kjudge("--version")
        self.assertRegex(out, r"^kjudge \d+\.\d+\.\d+, method \d+, commit \w+, driver \w+")

    def test_help(self):
        out, _ = self.run_kjudge("--help")
        for command in ("selftest", "capture", "replay", "score", "rank", "judge", "show", "dump",
                        "profile", "doctor"):
            self.assertIn(command, out)
            self.run_kjudge(command, "--help")
        self.assertNotIn("worker", out)
        self.assertNotIn("replay-once", out)

    def test_usage(self):
        for name in ("notes.txt", "UPPER.ZIP", "right.py"):
            self.write(name, _kjudge.RIGHT)
        for arguments in ([], ["nonsense"], ["selftest", "--nonsense"], ["score"],
                          ["selftest", "--pairs", "0"], ["selftest", "--pairs", "31"],
                          ["selftest", "--driver", "vulkan"], ["selftest", "no-such-file.py"],
                          ["selftest", "--challenge", "no-such-challenge"],
                          ["selftest", "--shape", "no-such-shape"], ["selftest", "--device", "7"],
                          ["selftest", ""], ["selftest", "--shape", ""], ["score", ""],
                          ["selftest", "notes.txt"], ["selftest", "UPPER.ZIP"],
                          ["capture", "right.py", "--challenge", "softmax", "-o", "made.kjb",
                           "--shape", "no-such-shape"],
                          ["show", "42"], ["rank", "no-such-folder"],
                          ["judge", "results", "--from", "no-such-folder", "--unsafe"]):
            with self.subTest(arguments):
                out, err = self.run_kjudge(*arguments, status=2)
                self.assertEqual(out, "")
                self.assertTrue(err.startswith("kjudge: usage: "), err)

    def test_malformed_files(self):
        self.write("result.json", "{")
        self.write("bundle.kjb", "not a bundle")
        for arguments in (["score", "result.json"], ["show", "result.json"], ["dump", "bundle.kjb"]):
            with self.subTest(arguments):
                _, err = self.run_kjudge(*arguments, status=3)
                self.assertIn(arguments[1], err)

    def test_bad_result_among_good_ones(self):
        good = os.path.join(_kjudge.ROOT, "tests", "golden", "result-v1", "accepted.json")
        shutil.copy(good, self.path("a.json"))
        self.write("b.json", '{"format": "kjudge-result/1"')
        shutil.copy(good, self.path("c.json"))
        out, err = self.run_kjudge("score", "a.json", "b.json", "c.json", status=3)
        self.assertIn("b.json", err)
        self.assertEqual([line for line in out.splitlines() if line.endswith(".json")],
                         ["a.json", "c.json"])
        out, _ = self.run_kjudge("score", "a.json", "b.json", "c.json", "--json", status=3)
        self.assertEqual(len(json.loads(out)["scores"]), 2)

    def test_missing_files(self):
        self.run_kjudge("dump", "no-such-file", status=6)
        self.run_kjudge("show", "no-such-file.json", status=6)

    def test_configuration_file(self):
        self.write("config/kjudge/config.toml", '[selftest]\ndriver = "cuda"\nshape = "x"\n')
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", "--driver", "host", status=2)
        self.assertIn("shape x", err)  # from the file; the driver from the flag
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", status=2, KJUDGE_DRIVER="host")
        self.assertIn("shape x", err)  # the driver from the environment
        self.write("config/kjudge/config.toml", "[selftest]\nnonsense = 1\n")
        _, err = self.run_kjudge("selftest", status=2)
        self.assertIn("nonsense", err)

    def test_configuration_file_named_by_a_variable(self):
        self.write("named.toml", '[selftest]\nshape = "x"\n')
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", status=2,
                                 KJUDGE_CONFIG=self.path("named.toml"))
        self.assertIn("shape x", err)
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", status=2,
                                 KJUDGE_CONFIG=self.path("none.toml"))
        self.assertIn("none.toml: no such file", err)

    def test_pairs_that_make_no_rounds(self):
        for pairs in ("0", "7", "12", "31", "45"):
            with self.subTest(pairs):
                self.run_kjudge("selftest", "--challenge", "softmax", "--pairs", pairs, status=2)

    def test_temporary_folder(self):
        challenge = self.small_challenge()
        submission = self.write("right.py", _kjudge.RIGHT)
        os.mkdir(self.path("relative"))
        self.run_kjudge("selftest", submission, "--challenge", challenge, "--pairs", "1",
                        TMPDIR="relative")
        _, err = self.run_kjudge("selftest", submission, "--challenge", challenge, status=2,
                                 TMPDIR=self.path("none"))
        self.assertIn("set TMPDIR", err)

    def test_full_temporary_folder_is_not_the_submissions_fault(self):
        import subprocess
        challenge = self.small_challenge()
        submission = self.write("right.py", _kjudge.RIGHT)
        os.mkdir(self.path("small"))
        mounts = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "small"],
                                cwd=self.folder, capture_output=True, text=True)
        if mounts.returncode != 0:
            self.skipTest("no mount namespace here: " + mounts.stderr)
        # In a mount namespace of its own, which goes with the command.
        script = ("mount -t tmpfs -o size=24k tmpfs small && cd small && TMPDIR=$PWD "
                  "XDG_CACHE_HOME=%s %s selftest %s --challenge %s --pairs 1 --json" %
                  (self.path("cache"), _kjudge.BINARY, submission, challenge))
        self.run_kjudge("selftest", submission, "--challenge", challenge, "--pairs", "1",
                        XDG_CACHE_HOME=self.path("cache"))  # the baseline and the reference
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)
        self.assertEqual(done.returncode, 5, done.stdout)
        self.assertIn('"judge_error"', done.stdout)
        self.assertIn("bytes are left for temporary files", done.stdout)

    def test_full_disk(self):
        out = os.open("/dev/full", os.O_WRONLY)
        import subprocess
        done = subprocess.run([_kjudge.BINARY, "--version"], stdout=out, env=self.environment,
                              stderr=subprocess.PIPE, check=False)
        os.close(out)
        self.assertEqual(done.returncode, 6)


if __name__ == "__main__":
    _kjudge.main()
