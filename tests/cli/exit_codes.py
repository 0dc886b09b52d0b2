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

    def test_score_of_a_file_that_is_not_there_ends_with_2(self):
        """A file of ours that is named and is not there is input that fails, 6; a challenge, a submission,
        a folder to look into that is not there is a mistake in the call, 2."""
        challenge = os.path.join(_kjudge.ROOT, "packages", "softmax")
        self.write("right.py", _kjudge.RIGHT)
        os.makedirs(self.path("results/submissions"))
        files = (["score", "nothere"], ["score", "nothere.json", "--json"], ["show", "nothere.json"],
                 ["dump", "nothere.kjb"],
                 ["replay", "--submission", "nothere.kjb", "--baseline", "nothere.kjb", "--challenge", challenge],
                 ["replay", "--submission", "nothere.kjb", "--challenge", challenge],
                 ["profile", "right.py", "--bundle", "nothere.kjb", "--challenge", challenge])
        calls = [["rank", "nothere"], ["pages", "nothere", "-o", "site"], ["export", "nothere", "-o", "x"],
                 ["fsck", "nothere"], ["bar", "list", "nothere"], ["invalidate", "nothere", "--list"],
                 ["rejudge", "nothere", "--list"], ["playoff", "nothere"], ["show", "1", "--results", "nothere"],
                 ["token", "list", "--results", "nothere"], ["token", "revoke", "ada", "--results", "nothere"],
                 ["status", "1", "--results", "nothere"], ["selftest", "nothere.py", "--challenge", challenge],
                 ["selftest", "right.py", "--challenge", "nothere"],
                 ["capture", "nothere.py", "--challenge", challenge, "-o", "x.kjb"], ["pack", "nothere"],
                 ["pack", challenge, "--binary", "nothere", "-o", "x.tar.zst"],
                 ["judge", "results", "--from", "nothere", "--unsafe"],
                 ["pages", "results", "-o", "site", "--challenge", "nothere"],
                 ["serve", "results", "--challenge", "nothere", "--unsafe"]]
        for status, several in ((6, files), (2, calls)):
            for arguments in several:
                with self.subTest(arguments):
                    out, err = self.run_kjudge(*arguments, status=None, timeout=60)
                    self.assertEqual((self.status, err.startswith("kjudge: ")), (status, True), err)
                    self.assertIn("nothere", err)
        self.assertIn("kjudge: host: nothere: No such file", self.run_kjudge("score", "nothere", status=6)[1])

    def test_pages_name_the_codes_of_a_cache_and_a_bundle_that_cannot_be_used(self):
        challenge = os.path.join(_kjudge.ROOT, "packages", "softmax")
        self.write("right.py", _kjudge.RIGHT)
        os.mkdir(self.path("folder"))
        for arguments, code, why in (
                (["selftest", "right.py", "--challenge", challenge, "--pairs", "1"], 6, "cache"),
                (["dump", "folder"], 3, "no regular file")):
            _, err = self.run_kjudge(*arguments, status=code, XDG_CACHE_HOME="/dev/null/cache")
            with open(os.path.join(_kjudge.SHARE, "man", "man1", "kjudge-%s.1" % arguments[0])) as file:
                codes = file.read().partition(".Sh EXIT STATUS")[2].partition(".El")[0]
            self.assertRegex(codes, r"(?s)\.It %d\n[^.]*?(\.Xr[^.]*)?%s" % (code, why))

    def test_errors_of_score_and_rank_lack_the_word_malformed(self):
        """Each error begins with whose fault it is, as kjudge(1) has it."""
        self.write("result.json", "{")
        self.write("results/submissions/1/submission.json", "{")
        self.write("results/submissions/1/evaluations/1/result.json", "{")
        for command in (["score", "result.json"], ["show", "result.json"], ["dump", "result.json"],
                        ["rank", "results"], ["pages", "results", "-o", "site"], ["export", "results", "-o", "x"],
                        ["show", "1", "--results", "results"], ["invalidate", "results", "--run", "a", "--preview"]):
            with self.subTest(command):
                _, err = self.run_kjudge(*command, status=None)
                self.assertNotEqual(self.status, 0)
                for line in err.splitlines():
                    if "result.json" in line or "submission.json" in line:
                        self.assertTrue(line.startswith("kjudge: malformed: "), line)
                        break
                else:
                    self.fail(err)

    def test_configuration_file(self):
        self.write("config/kjudge/config.toml", '[selftest]\ndriver = "cuda"\nshape = "x"\n')
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", "--driver", "host", status=2)
        self.assertIn("shape x", err)  # from the file; the driver from the flag
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", status=2, KJUDGE_DRIVER="host")
        self.assertIn("shape x", err)  # the driver from the environment
        self.write("config/kjudge/config.toml", "[selftest]\nnonsense = 1\n")
        _, err = self.run_kjudge("selftest", status=2)
        self.assertIn("nonsense", err)

    def test_mistakes_in_the_configuration_file(self):
        path = self.path("config/kjudge/config.toml")
        for text, words in (
                ('driver = "host"', "line 1: driver: expected [COMMAND] before"),
                ("nonsense", "line 1: expected [COMMAND], or NAME = VALUE as in driver = \"host\", found nonsense"),
                ("a b = 1", "line 1: expected [COMMAND], or NAME = VALUE as in driver = \"host\", found a b = 1"),
                ("x", "line 1: expected [COMMAND], or NAME"),
                ("# one\n\n[nosuch]\nx = 1", "line 3: [nosuch]: no such command; there are selftest, "),
                ("[nosuch]", "line 1: [nosuch]: no such command"),
                ("[worker]\nx = 1", "line 1: [worker]: no such command"),
                ("[selftest", "line 1: expected \"]\" after [selftest, found the end of the line"),
                ("[selftest] x = 1", "line 1: expected the end of the line, found x = 1"),
                ("[selftest]\nnonsense = 1", "line 2: [selftest] nonsense: no such option; there are json, "),
                ("selftest.nonsense = 1", "line 1: [selftest] nonsense: no such option"),
                ("[selftest]\nhelp = true", "line 2: [selftest] help: no such option"),
                ('[selftest]\ndevice = "x"', "line 2: [selftest] device: expected an integer from 0 to 1023, found x"),
                ("[selftest]\ndevice = [\n  1,\n  2]", "line 2: [selftest] device: expected one value, found 2"),
                ("[selftest]\ndevice = [1\n2]", "line 3: expected \",\" or \"]\" in a list, found 2]"),
                ("[selftest]\n[judge]\n[selftest]", "line 3: [selftest] stands twice, first in line 1"),
                ("[selftest]\ndevice = 0\ndevice = 1", "line 3: device stands twice, first in line 2"),
                ("[selftest]\npairs = 3001", "line 2: [selftest] pairs: expected an integer from 1 to 3000, found 3001"),
                ('[selftest]\ndriver = "vulkan"', "line 2: [selftest] driver: vulkan not in {auto,cuda,host}"),
                ("[selftest]\ndriver = vulkan", "line 2: expected a string in quotes, a number, true, false or a "
                                               "list of them, found vulkan"),
                ('[selftest]\nshape = "a', "line 2: a string without its last \""),
                ('[selftest]\nshape = "a\\x"', "line 2: expected \\\", \\\\, \\n or \\t after a backslash"),
                ('[selftest]\nshape = ""', "line 2: [selftest] shape: is empty"),
                ("[selftest]\njson = 5", "line 2: [selftest] json: expected true or false, found 5"),
                ("\ufeff[selftest]", "line 1: begins with a byte order mark"),
                ('[judge]\nlease = 0', "line 2: [judge] lease: expected an integer from 1 to 86400, found 0")):
            with self.subTest(text):
                self.write("config/kjudge/config.toml", text + "\n")
                _, err = self.run_kjudge("selftest", "--shape", "x", "--device", "0", status=2,
                                         KJUDGE_DRIVER="")
                self.assertTrue(err.startswith("kjudge: usage: %s: %s" % (path, words)), err)
        # An empty variable sets nothing, so the file's value holds.
        self.write("config/kjudge/config.toml", '[selftest]\ndriver = "cuda"\n')
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", status=None, KJUDGE_DRIVER="",
                                 CUDA_VISIBLE_DEVICES="")
        self.assertNotEqual(self.status, 0)
        self.assertIn("cuda", err)

    def test_strings_of_the_configuration_file(self):
        for text, means in (('shape = "a#b"  # a comment', "a#b"), ("shape = 'a\\b'", "a\\b"),
                            ('"shape" = "say \\"x\\""', 'say "x"'), ("shape = [ # one\r\n 'z', # it\n]\r", "z")):
            self.write("config/kjudge/config.toml", "[selftest]\r\n" + text + "\n")
            _, err = self.run_kjudge("selftest", "--challenge", "softmax", "--driver", "host", status=2)
            self.assertIn("shape " + means, err)
        self.write("config/kjudge/config.toml", 'selftest.shape = "w"')
        _, err = self.run_kjudge("selftest", "--challenge", "softmax", "--driver", "host", status=2)
        self.assertIn("shape w", err)

    def test_over_long_values_are_cut_in_messages(self):
        """Whatever they are of: what is wrong with them stands before and after."""
        long = "v" * 100_000
        self.write("config/kjudge/config.toml", '[selftest]\ndevice = "%s"\n' % long)
        said = [self.run_kjudge("selftest", status=2)[1]]
        self.write("config/kjudge/config.toml", '[selftest]\n%s = 1\n' % long)
        said.append(self.run_kjudge("selftest", status=2)[1])
        os.remove(self.path("config/kjudge/config.toml"))
        said += [self.run_kjudge(*arguments, status=None, **environment)[1] for arguments, environment in (
            (("selftest", "--device", long), {}), (("selftest", "--driver", long), {}), ((long,), {}),
            (("selftest", "--" + long), {}), (("selftest",), {"KJUDGE_DEVICE": long}), (("score", long), {}),
            (("selftest", "--challenge", long), {}),
            (("token", "add", long, "--results", "r"), {}), (("dump", "/".join(["ab"] * 1000)), {}))]
        for err in said:
            self.assertTrue(err.startswith("kjudge: "), err[:200])
            self.assertLess(len(err), 1400, err)
            self.assertLess(err.count("\n"), 3, err)
        self.assertIn("[selftest] device: expected an integer from 0 to 1023, found vvvv", said[0])
        self.assertIn(" bytes left out ...]", said[0])

    def test_a_configuration_file_that_is_a_folder(self):
        os.makedirs(self.path("config/kjudge/config.toml"))
        _, err = self.run_kjudge("selftest", status=2)
        self.assertIn("config.toml: a folder, not a configuration file", err)
        _, err = self.run_kjudge("selftest", status=2, KJUDGE_CONFIG=self.folder)
        self.assertIn("KJUDGE_CONFIG=%s: a folder, not a configuration file" % self.folder, err)

    def test_a_configuration_file_without_an_end(self):
        """--config /dev/zero ended as a bug of kjudge's, a FIFO in nothing."""
        os.mkfifo(self.path("pipe"))
        with open(self.path("large.toml"), "w") as file:
            file.truncate(1 << 40)
        good = os.path.join(_kjudge.ROOT, "tests", "golden", "result-v1", "accepted.json")
        for name, what in (("/dev/zero", "not a regular file"), ("pipe", "not a regular file"),
                           ("large.toml", "larger than 1048576 bytes")):
            with self.subTest(name):
                for arguments, variables in ((("--config", name, "score", good), {}),
                                             (("score", good), {"KJUDGE_CONFIG": name})):
                    _, err = self.run_kjudge(*arguments, status=2, timeout=60, **variables)
                    self.assertTrue(err.startswith("kjudge: usage: "), err)
                    self.assertIn("%s: %s" % (name, what), err)

    def test_a_configuration_that_a_shell_pipes(self):
        import subprocess
        for end in ("--config /dev/stdin", "--config <(cat)"):
            done = subprocess.run(["bash", "-c", 'printf "[selftest]\nnonsense = 1\n" | "$0" %s score x' % end,
                                   _kjudge.BINARY], cwd=self.folder, env=self.environment, text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertIn("line 2: [selftest] nonsense: no such option", done.stdout)
        self.run_kjudge("--config", "/dev/null", "token", "list", "--results", "none", status=2)

    def test_help_and_version_answer_whatever_is_configured(self):
        def answers(**environment):
            for arguments, words in ((("--help",), "Subcommands:"), (("selftest", "--help"), "--pairs"),
                                     (("selftest", "-h"), "--pairs"), (("--version",), "commit")):
                with self.subTest(arguments, environment=environment):
                    out, err = self.run_kjudge(*arguments, **environment)
                    self.assertIn(words, out)
                    self.assertEqual(err, "")

        def is_refused(words, **environment):
            _, err = self.run_kjudge("selftest", "--challenge", "softmax", status=2, **environment)
            self.assertIn(words, err)

        for text in ("[broken\nx=", "[selftest]\nnonsense = 1\n", '[selftest]\ndevice = "x"\n'):
            self.write("config/kjudge/config.toml", text)
            answers()
            is_refused("config.toml: ")
        os.remove(self.path("config/kjudge/config.toml"))
        for environment in ({"KJUDGE_CONFIG": self.path("missing.toml")}, {"KJUDGE_CONFIG": self.folder},
                            {"KJUDGE_DRIVER": "vulkan"}, {"KJUDGE_DEVICE": "x"}):
            answers(**environment)
            is_refused("%s=%s: " % list(environment.items())[0], **environment)

    def test_variables_are_named_with_what_is_wrong_in_them(self):
        for arguments, variables, words in (
                (["selftest"], {"KJUDGE_DEVICE": "x"},
                 "KJUDGE_DEVICE=x: expected an integer from 0 to 1023, found x"),
                (["selftest"], {"KJUDGE_DEVICE": "010"}, "KJUDGE_DEVICE=010: expected an integer"),
                (["selftest"], {"KJUDGE_DRIVER": "vulkan"}, "KJUDGE_DRIVER=vulkan: vulkan not in {"),
                (["selftest", "--device", "y"], {"KJUDGE_DEVICE": "x"},
                 "--device: expected an integer from 0 to 1023, found y")):
            with self.subTest(arguments, variables=variables):
                _, err = self.run_kjudge(*arguments, status=2, **variables)
                self.assertTrue(err.startswith("kjudge: usage: " + words), err)

    def test_commands_that_there_are_not(self):
        for given, words in (("nosuch", "nosuch: no such command; there are selftest, "),
                             ("selftst", "selftst: no such command, perhaps selftest;"),
                             ("shwo", "shwo: no such command, perhaps show;"),
                             ("--nosuch", "--nosuch: no such option before a command;"),
                             ("x" * 10000, "no such command; there are")):
            with self.subTest(given[:20]):
                _, err = self.run_kjudge(given, status=2)
                self.assertIn(words, err)

    def test_what_is_neither_a_submission_nor_a_file(self):
        for what in ("abc", "4x2", "99999999999"):
            _, err = self.run_kjudge("show", what, status=2)
            self.assertIn(what + ": neither the number of a submission nor a result file", err)
        _, err = self.run_kjudge("pack", "nosuch", status=2)
        self.assertIn("kjudge: usage: nosuch: neither a folder with challenge.json nor a package", err)

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

    def test_an_output_takes_the_place_of_files_alone(self):
        """Of a device, as /dev/null for root, a link or a pipe a rename would leave nothing."""
        os.mkfifo(self.path("pipe"))
        os.symlink("elsewhere.kjb", self.path("link"))
        os.mkdir(self.path("folder"))
        os.makedirs(self.path("results/submissions"))
        small = self.small_challenge()
        source = self.write("submission.py", _kjudge.RIGHT)
        for name, kind in (("pipe", "a pipe"), ("link", "a link"), ("folder", "a folder")):
            for command in (("capture", source, "--challenge", small, "-o", name),
                            ("export", "results", "-o", name)):
                with self.subTest(name, command=command[0]):
                    before = os.lstat(self.path(name))
                    _, err = self.run_kjudge(*command, status=6)
                    self.assertIn("%s: is %s, and a file would take its place; give the output another name" %
                                  (name, kind), err)
                    self.assertEqual(os.lstat(self.path(name)), before)

    def test_full_disk(self):
        out = os.open("/dev/full", os.O_WRONLY)
        import subprocess
        done = subprocess.run([_kjudge.BINARY, "--version"], stdout=out, env=self.environment,
                              stderr=subprocess.PIPE, check=False)
        os.close(out)
        self.assertEqual(done.returncode, 6)


if __name__ == "__main__":
    _kjudge.main()
