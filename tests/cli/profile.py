# SPDX-License-Identifier: Apache-2.0
"""profile needs a GPU and says so before anything is captured; what ncu would run, runs."""

import json
import os
import re
import shutil

import _kjudge

NCU = """#!/bin/sh
case "$*" in
*--version*) echo "Version 2025.3.1.0 (build 1)"; exit;;
*--import*)
  echo '==PROF== talk'
  echo '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"'
  echo '"","","","","ns"'
  echo '"0","f(int, float)","(8, 1, 1)","(64, 1, 1)","12,345"'
  exit;;
esac
echo "$*" > "$NCU_CALL"
$NCU_FAILS
while [ "$1" != --target-processes ]; do
  [ "$1" = --export ] && echo report > "$2"
  shift
done
"""


class Profile(_kjudge.Case):
    def test_the_host_driver_has_no_profiler(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        out, err = self.run_kjudge("profile", right, "--challenge", challenge, "--driver", "host",
                                   "-o", "profile.json", status=5)
        self.assertEqual(out, "")
        self.assertIn("profiling needs a GPU", err)
        self.assertFalse(os.path.exists(self.path("profile.json")))

    def test_usage(self):
        _, err = self.run_kjudge("profile", "--set", "everything", status=2)
        self.assertIn("kjudge: usage: ", err)

    def test_one_replay_in_one_process(self):
        challenge = self.small_challenge()
        right = self.write("right.py", _kjudge.RIGHT)
        self.run_kjudge("capture", right, "-o", "s.kjb", "--shape", "64x48", "--challenge", challenge)
        once = ["replay-once", "--bundle", "s.kjb", "--challenge", challenge, "--driver", "host"]
        out, err = self.run_kjudge(*once, "--shape", "64x48")
        self.assertEqual((out, err), ("", ""))
        _, err = self.run_kjudge(*once, "--shape", "test-3x5", status=3)  # not in this bundle
        self.assertIn("test-3x5", err)
        _, err = self.run_kjudge(*once, "--shape", "7x7", status=2)
        self.assertIn("7x7", err)
        self.assert_nothing_left()

    def profile(self, *arguments, status=0, **environment):
        """With the host driver in the place of NVIDIA's, and an ncu that runs nothing."""
        if not os.path.exists(self.path("libcuda.so.1")):
            self.challenge = self.small_challenge()
            self.run_kjudge("capture", self.write("right.py", _kjudge.RIGHT), "-o", "s.kjb", "--shape", "64x48",
                            "--challenge", self.challenge)
            path = os.path.join(self.challenge, "challenge.json")
            with open(path) as file:
                challenge = json.load(file)
            wide = dict(challenge["shapes"][0], dims={"rows": 64, "cols": 96})  # which was not recorded
            challenge["shapes"].insert(0, wide)
            for shape in challenge["shapes"] + challenge["tests"]:
                shape["arch"] = "sm_*"
            with open(path, "w") as file:
                json.dump(challenge, file)
            library = os.path.join(os.path.dirname(_kjudge.BINARY), "..", "lib", "kjudge")
            os.symlink(os.path.realpath(os.path.join(library, "libkjudge_host_driver.so")),
                       self.path("libcuda.so.1"))
            os.chmod(self.write("bin/ncu", NCU), 0o755)
        environment = {"LD_LIBRARY_PATH": self.folder, "NCU_CALL": self.path("call"),
                       "PATH": self.path("bin") + ":" + os.environ["PATH"], **environment}
        return self.run_kjudge("profile", "--driver", "cuda", "--challenge", self.challenge,
                               "--bundle", "s.kjb", *arguments, status=status, **environment)

    def test_a_profile(self):
        out, err = self.profile("-o", "p.json", "--ncu-rep", "p.ncu-rep", "--set", "full")
        self.assertRegex(out, r"shape 64x48, ncu 2025\.3\.1\.0, set full\n.*\n"
                              r"f\(int, float\) +\(64, 1, 1\) +\(8, 1, 1\) +12\.35 us")
        self.assertEqual(err, "")
        with open(self.path("call")) as file:
            call = file.read()
        self.assertIn("--graph-profiling node --clock-control none --set full "
                      "--profile-from-start off --export ", call)
        self.assertIn(" replay-once --bundle " + self.path("s.kjb"), call)
        self.assertIn(" --shape 64x48 --driver cuda --device 0", call)
        with open(self.path("p.ncu-rep")) as file:
            self.assertEqual(file.read(), "report\n")
        with open(self.path("p.json")) as file:
            written = file.read()
        out, _ = self.profile("--json", "--set", "full")
        self.assertEqual(out, written)
        profile = json.loads(out)
        self.assertEqual((profile["format"], profile["shape"]), ("kjudge-profile/1", "64x48"))
        self.assertEqual(profile["kernels"][0]["metrics"],
                         [{"name": "gpu__time_duration.sum", "unit": "ns", "value": 12345}])
        self.assert_nothing_left()

    def test_an_output_that_cannot_be_written_is_told_before_the_work(self):
        for option in ("-o", "--ncu-rep"):
            for name, words in (("no/such/p", "no/such/p: No such file or directory"), (".", "is a folder")):
                _, err = self.profile(option, name, status=6)
                self.assertIn(words, err)
        _, err = self.profile("-o", "p", "--ncu-rep", "./p", status=2)
        self.assertIn("--output and --ncu-rep both name p", err)
        self.assertFalse(os.path.exists(self.path("call")))

    def test_what_no_profile_holds_is_no_profile(self):
        """It would be damage in a results directory."""
        self.profile()
        long = NCU.replace('"(64, 1, 1)"', '"(%s)"' % ("6" * 1000))
        os.chmod(self.write("bin/ncu", long), 0o755)
        _, err = self.profile("--json", "-o", "p.json", status=5)
        self.assertIn("ncu counted more than a profile holds: its profile: kernels[0].grid: expected", err)
        self.assertFalse(os.path.exists(self.path("p.json")))

    def test_a_folder_of_PATH_that_cannot_be_looked_into(self):
        os.symlink("loop", self.path("loop"))
        path = ":".join([self.path("loop"), "/" + "x" * 300, self.path("bin"), os.environ["PATH"]])
        self.profile(PATH=path)

    def judge(self, *arguments, **environment):
        return self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe",
                               *arguments, KJUDGE_TEST_NCU=self.path("bin/ncu"), NCU_CALL=self.path("call"),
                               **environment)

    def test_what_is_accepted_is_profiled(self):
        self.challenge = self.small_challenge()
        os.chmod(self.write("bin/ncu", NCU), 0o755)
        self.write("from/ada.py", _kjudge.RIGHT)
        self.write("from/ben.py", "raise ValueError('no')\n")
        _, err = self.judge("--pages", "site")
        self.assertNotIn("no profile", err)
        self.assertIn("accepted", err)
        ada = self.path("results/submissions/1/evaluations/1")
        self.assertEqual([n for n in os.listdir(ada) if n.startswith("profile")], ["profile-64x48.json"])
        with open(os.path.join(ada, "profile-64x48.json")) as file:
            profile = json.load(file)
        self.assertEqual((profile["shape"], profile["set"], profile["submission"]), ("64x48", "basic", "ada.py"))
        with open(self.path("site/evaluation/1.html")) as file:
            self.assertIn("profile/1.64x48.html", file.read())
        self.assertTrue(os.path.exists(self.path("site/profile/1.64x48.html")))
        self.assertFalse(any(n.startswith("profile") for n in os.listdir(
            self.path("results/submissions/2/evaluations/1"))))
        # The same files have the same profile; a set judged again from its recording too.
        self.write("from/eve.py", _kjudge.RIGHT)
        self.judge("--profile", "none")
        self.assertTrue(os.path.exists(self.path("results/submissions/3/evaluations/1/profile-64x48.json")))
        out, _ = self.run_kjudge("fsck", "results")
        self.assertEqual(out, "")
        # A profiler that fails, or is not there, fails nothing else.
        for run, arguments, environment in (("fay", ["--profile", "full"], {"NCU_FAILS": "exec echo odd"}),
                                            ("gil", ["--profile", "none"], {})):
            self.write("from/%s.py" % run, _kjudge.RIGHT + "# %s\n" % run)
            _, err = self.judge(*arguments, **environment)
            self.assertIn(run + ": accepted", err)
            self.assertEqual("no profile: ncu wrote no report; ncu said:\n  odd" in err, run == "fay", err)
        with open(self.path("call")) as file:
            self.assertIn("--set full", file.read())
        self.assertRegex(self.judge("--pages", "site")[1], "nothing was waiting")
        for number in "45":
            self.assertFalse(any(n.startswith("profile") for n in os.listdir(
                self.path("results/submissions", number, "evaluations/1"))))

    def test_profiles_that_cannot_be_had_are_no_default(self):
        self.write("from/ada.py", _kjudge.RIGHT)
        arguments = ["judge", "results", "--from", "from", "--challenge", self.small_challenge(), "--unsafe"]
        _, err = self.run_kjudge(*arguments, "--profile", "basic", status=5)
        self.assertIn("profiling needs a GPU", err)
        self.assertFalse(os.path.exists(self.path("results/submissions/1")))
        self.run_kjudge(*arguments)

    def test_is_written_as_ever(self):
        """tests/golden/profile-v1, but for what names the machine and the program."""
        made, _ = self.profile("--json")
        path = os.path.join(_kjudge.ROOT, "tests", "golden", "profile-v1", "profile.json")
        for field in ("submission", "device", "driver", "kjudge_version"):
            made, found = re.subn('"%s": ".+"' % field, '"%s": "%s"' % (field, field), made)
            self.assertEqual(found, 1, field)
        if os.environ.get("KJUDGE_WRITE_GOLDEN"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(made)
        with open(path) as file:
            self.assertEqual(made, file.read())

    def test_failures_of_ncu(self):
        _, err = self.profile("-o", "p.json", NCU_FAILS="echo ==ERROR== ERR_NVGPUCTRPERM", status=5)
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", err)
        _, err = self.profile("-o", "p.json", NCU_FAILS="exec echo ==ERROR== odd", status=5)
        self.assertIn("==ERROR== odd", err)
        self.assertFalse(os.path.exists(self.path("p.json")))
        _, err = self.profile("--shape", "7x7", status=2)
        self.assertIn("challenge softmax has no such shape", err)
        _, err = self.profile("--shape", "64x96", status=2)
        self.assertIn("s.kjb: has no 64x96; what was recorded is 64x48", err)
        self.profile(PATH=self.path("nowhere"), CUDA_HOME=self.folder)  # its bin has one
        self.environment.pop("CUDA_HOME", None)
        if not os.path.exists("/usr/local/cuda/bin/ncu"):
            _, err = self.profile(PATH=self.path("nowhere"), status=5)
            self.assertIn("apt-get install cuda-nsight-compute", err)
        self.assert_nothing_left()


if __name__ == "__main__":
    _kjudge.main()
