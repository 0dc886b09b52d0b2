# SPDX-License-Identifier: Apache-2.0
"""pages writes a site from a results directory: whole, only what changed, text as text, and bad files
left out. How it looks and works in a browser: tests/pages/run.sh."""

import csv
import html.parser
import json
import os
import shutil

import _kjudge
import _results_directory

GOLDEN = os.path.join(_kjudge.ROOT, "tests", "golden", "results-directory-v1")


class Parser(html.parser.HTMLParser):
    """Elements, links and text of a page, as a browser's parser would find them."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.links, self.text, self.attributes = [], [], "", []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.text += data


class Pages(_kjudge.Case):
    def site(self):
        """{address: text} of all files."""
        found = {}
        for top, _, names in os.walk(self.path("site")):
            for name in names:
                path = os.path.join(top, name)
                with open(path, newline="") as file:
                    found[os.path.relpath(path, self.path("site"))] = file.read()
        return found

    def pages(self, *arguments, **more):
        out, self.said = self.run_kjudge("pages", "results", "-o", "site", "--json", *arguments, **more)
        return json.loads(out)

    def test_a_golden_results_directory(self):
        shutil.copytree(os.path.join(GOLDEN, "results"), self.path("results"))
        # The same recording from another run.
        shutil.copytree(self.path("results/submissions/1"), self.path("results/submissions/3"))
        identity = self.path("results/submissions/3/submission.json")
        with open(identity) as file:
            text = file.read().replace('"ada"', '"eve"')
        self.write(identity, text)
        done = self.pages("--challenge", os.path.join(GOLDEN, "challenge"))
        self.assertEqual(self.said, "")
        self.assertEqual(done, {"format": "kjudge-pages/1", "pages": len(self.site()) - 1,
                                "written": done["pages"], "removed": 0, "skipped": 0})
        site = self.site()
        for name, page in site.items():
            if name.endswith(".html"):
                self.check_page(name, page, site)
        # As rank has it.
        ranking = json.loads(self.run_kjudge("rank", "results", "--json")[0])["entries"]
        board = next(page for name, page in site.items() if name.startswith("leaderboard/"))
        for entry in ranking:
            self.assertIn("%.3f×" % entry["speedup"], board)
            self.assertIn("%.3f to %.3f" % tuple(entry["interval"]), board)
        page = Parser(site["evaluation/1.html"])
        self.assertRegex(page.text, r"Same kernels as\s*3\s")
        self.assertIn("within ", page.text)  # its checks
        self.assertEqual(page.elements.count("circle") + page.elements.count("rect") - 1, 30 + 2)
        self.assertIn("queued, next to be judged", site["evaluation/2.html"])
        self.assertIn('data-refresh="5"', site["evaluation/2.html"])
        self.assertNotIn("data-refresh", site["evaluation/1.html"])

    def check_page(self, name, page, site):
        parsed = Parser(page)
        self.assertTrue(page.startswith("<!DOCTYPE html>\n"), name)
        self.assertEqual(parsed.elements.count("script"), 1, name)
        self.assertEqual([a for a in parsed.attributes if a.startswith("on") or a == "style"], [], name)
        self.assertIn("default-src &#39;none&#39;", page)
        for link in parsed.links:
            if link != "#main":
                self.assertIn(os.path.normpath(os.path.join(os.path.dirname(name), link)), site, name)

    def test_a_judge_error_does_not_promise_another_evaluation(self):
        _results_directory.make(self.path("results"))
        self.pages(status=3)
        site = self.site()
        page = Parser(site["evaluation/11.html"]).text
        self.assertIn("When the organizer has mended the cause, it is judged again.", " ".join(page.split()))
        self.assertNotIn("to come", page)
        self.assertNotIn("evaluation/11-2.html", site)
        self.assertIn("queued", site["evaluation/10.html"])  # which waits

    def test_hostile_and_broken_files(self):
        _results_directory.make(self.path("results"))
        challenge = self.small_challenge(publish_code="all")  # else no log is shown
        done = self.pages("--challenge", challenge, status=3)
        self.assertEqual(done["skipped"], 2)
        self.assertIn("submissions/12/evaluations/1/result.json: ", self.said)
        self.assertIn("submissions/13/submission.json: ", self.said)
        site = self.site()
        for name, page in site.items():
            if name.endswith(".html"):
                self.check_page(name, page, site)
        self.assertNotIn("\u202e", "".join(site.values()))
        hostile = Parser(site["evaluation/4.html"])
        self.assertIn("</pre></main><script>", hostile.text)
        self.assertNotIn("img", hostile.elements)
        self.assertEqual([name for name in site if ".." in name or "<" in name], [])
        self.pages(status=3)  # nobody says that its code may be seen, and a log quotes it
        self.assertNotIn("&lt;/pre&gt;", self.site()["evaluation/4.html"])
        # Judged again after a judge error.
        self.assertIn("evaluation/5-2.html", site)
        self.assertIn("5-2.html", site["evaluation/5.html"])
        fast = Parser(site["evaluation/7.html"]).text
        self.assertIn("900.0 ms below the floor", fast)
        self.assertRegex(fast, r"900\.0 ms, measured below the floor\d{6}\.\d %")  # of the speed of light
        self.assertIn("two modes", fast)
        self.assertNotIn("two modes", Parser(site["evaluation/6.html"]).text)
        out, _ = self.run_kjudge("show", "7", "--results", self.path("results"))
        self.assertIn("below the floor, two modes of the submission", out)
        self.assertRegex(out, r"4096x1000: \d+\.\d % of the speed of light")
        rows = list(csv.reader(site["profile/3.4096x1000.csv"].splitlines()))
        self.assertEqual(len(rows), 1 + 2 * 8)
        self.assertEqual(rows[8][-1], "'=NVIDIA H200")
        self.assertIn("profile/3.4096x1000.html", site)
        self.assertIn("+50.0 %", site["compare/1-with-3.html"])  # sm__throughput

    def test_only_what_changed_is_written_and_what_is_gone_removed(self):
        results = _results_directory.Results(self.path("results"))
        first = results.add("ada", "a.py", _results_directory.faster(1.5, 1))
        second = results.add("bob", "b.py")
        self.pages()
        page = self.path("site/evaluation/1.html")
        before = os.stat(page)
        self.write("site/mine.html", "")
        done = self.pages()
        self.assertEqual((done["written"], done["removed"]), (0, 0))
        shutil.rmtree(second)
        done = self.pages()
        self.assertEqual(done["removed"], 2)  # its run and its evaluation
        self.assertEqual(done["written"], 1)  # the front page
        self.assertFalse(os.path.exists(self.path("site/evaluation/2.html")))
        self.assertTrue(os.path.exists(self.path("site/mine.html")))
        self.assertEqual(os.stat(page).st_ino, before.st_ino)
        # A list that somebody else wrote removes nothing outside.
        outside = self.write("outside.html", "")
        with open(self.path("site/.kjudge-pages"), "a") as file:
            file.write("../outside.html\n%s\nmine\n/outside.html\n" % outside)
        self.pages()
        self.assertTrue(os.path.exists(outside))
        # A profile that is none is left out with its path, and the page is there.
        self.write(os.path.join(first, "evaluations", "1", "profile.json"), "{}")
        self.assertEqual(self.pages(status=3)["skipped"], 1)
        self.assertIn("profile.json: ", self.said)
        self.assertTrue(os.path.exists(page))

    def test_usage(self):
        _, err = self.run_kjudge("pages", "nothing", "-o", "site", status=2)
        self.assertIn("nothing: no results directory", err)
        self.assertFalse(os.path.exists(self.path("site")))
        _results_directory.Results(self.path("results")).add("ada", "a.py")
        self.write("file", "")
        _, err = self.run_kjudge("pages", "results", "-o", "file/site", status=6)
        self.assertIn("file/site: ", err)
        out, _ = self.run_kjudge("pages", "results", "-o", "site")
        self.assertRegex(out, r"^site: \d+ files, \d+ of them new or changed, 0 removed\n$")


if __name__ == "__main__":
    _kjudge.main()
