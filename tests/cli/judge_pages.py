# SPDX-License-Identifier: Apache-2.0
"""judge --pages: the page of a submission follows it, from the queue through every step to the result; and no
judge fails for a page, nor leaves one that runs for ever."""

import json
import os
import re
import time

import _kjudge

# A build.sh and a prepare that last until a file is there, as many seconds as any reader needs.
SLOW = "import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)\n"


class JudgePages(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()
        self.arguments = ("judge", "results", "--from", "from", "--challenge", self.challenge, "--unsafe",
                          "--pages", "site")

    def page(self, name, folder="site"):
        """Its <main> as text; empty where there is no page."""
        try:
            with open(self.path(folder, "evaluation", name + ".html")) as file:
                text = file.read()
        except FileNotFoundError:
            return ""
        self.assertTrue(text.endswith("</html>\n"), text)  # whole, whenever it is read
        return text

    def current(self, page):
        match = re.search(r'<li aria-current="step">([^<]*)</li>', page)
        return match.group(1) if match else ""

    def go(self, name):
        self.write(name, "")

    def slow(self, run):
        """A submission that waits for the files RUN.built and RUN.prepared."""
        self.write("from/%s/submission.py" % run, SLOW % self.path(run + ".prepared") + _kjudge.RIGHT)
        self.write("from/%s/build.sh" % run, "while [ ! -e %s ]; do sleep 0.01; done\n" % self.path(run + ".built"))

    def test_a_page_follows_its_submission(self):
        self.slow("ada")
        self.write("from/ben.py", _kjudge.RIGHT)
        judge = self.start(*self.arguments)
        self.wait_for(lambda: self.current(self.page("1")) == "building", "building")
        self.assertIn('data-refresh="5"', self.page("1"))
        self.assertEqual(self.current(self.page("2")), "queued, 1 before it")
        # Whoever writes all pages meanwhile says the same.
        self.run_kjudge("pages", "results", "-o", "site")
        self.assertEqual(self.current(self.page("1")), "building")
        self.assertEqual(self.current(self.page("2")), "queued, next to be judged")  # nobody else waits
        self.go("ada.built")
        self.wait_for(lambda: self.current(self.page("1")) == "capturing", "capturing")
        out, _ = self.run_kjudge("status", "1", "--results", "results", "--json", status=75)
        self.assertEqual([json.loads(out).get(name) for name in ("state", "step")], ["judging", "capturing"])
        self.go("ada.prepared")
        steps = set()
        deadline = time.monotonic() + 60
        while "data-refresh" in self.page("1") and time.monotonic() < deadline:
            steps.add(self.current(self.page("1")))
        replaying = [step for step in steps if step.startswith("replaying")]
        self.assertRegex(replaying[0], r"^replaying, [a-z0-9 ]+, shape [12] of 2: ")
        self.assertIn("accepted", self.page("1"))
        out, err = judge.communicate()
        self.assertEqual(judge.returncode, 0, err)
        self.assertNotIn("pages:", err)
        self.assertIn("accepted", self.page("2"))
        self.assertNotIn("data-refresh", self.page("2"))
        with open(self.path("site/run/ben.html")) as file:
            self.assertIn("accepted", file.read())
        self.assertEqual(os.listdir(self.path("site/.kjudge-running")), [])
        for number in "12":
            self.assertEqual(os.listdir(self.path("results/submissions", number, "claims/1")), ["lease.json"])
        # What the judge wrote is what all pages are.
        self.write("from/cyd.py", _kjudge.RIGHT + "# c\n")
        self.run_kjudge(*self.arguments)
        mine = self.page("3")
        self.run_kjudge("pages", "results", "-o", "site", "--challenge", self.challenge)
        self.assertEqual(self.page("3"), mine)

    def test_killed_judges_leave_no_page_that_runs(self):
        self.slow("ada")
        self.go("ada.built")
        judge = self.start(*self.arguments)
        self.wait_for(lambda: self.current(self.page("1")) == "capturing", "capturing")
        judge.kill()
        judge.communicate()
        self.assertEqual(self.current(self.page("1")), "capturing")
        self.run_kjudge("pages", "results", "-o", "other")
        self.assertEqual(self.current(self.page("1", "other")), "queued, next to be judged")
        # Interrupted, it says so itself.
        judge = self.start(*self.arguments)
        self.wait_for(lambda: os.path.exists(self.path("results/submissions/1/claims/2/running.json")) and
                      self.current(self.page("1")) == "capturing", "capturing")
        _kjudge.interrupt(judge)
        judge.communicate()
        self.assertEqual(self.current(self.page("1")), "queued, next to be judged")
        # Judged by one that knows nothing of the pages; the next that does puts them right.
        self.go("ada.prepared")
        self.run_kjudge(*self.arguments[:-2])
        self.assertIn("data-refresh", self.page("1"))
        self.run_kjudge(*self.arguments)
        self.assertIn("accepted", self.page("1"))
        self.assertNotIn("data-refresh", self.page("1"))

    def test_pages_that_cannot_be_written_are_no_judge_error(self):
        self.write("from/ben.py", _kjudge.RIGHT)
        self.write("site", "a file")
        out, err = self.run_kjudge(*self.arguments, "--json")
        self.assertEqual([j["verdict"] for j in json.loads(out)["judged"]], ["accepted"])
        self.assertRegex(err, r"pages: .*site.*; judging goes on")
        self.assertEqual(err.count("pages: "), 1)


if __name__ == "__main__":
    _kjudge.main()
