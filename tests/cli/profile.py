# SPDX-License-Identifier: Apache-2.0
"""profile needs a GPU and says so before anything is captured; what ncu would run, runs."""

import os

import _kjudge


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
        for arguments in (["--set", "everything"], ["--bundle", "no-such-bundle"]):
            with self.subTest(arguments):
                _, err = self.run_kjudge("profile", *arguments, status=2)
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


if __name__ == "__main__":
    _kjudge.main()
