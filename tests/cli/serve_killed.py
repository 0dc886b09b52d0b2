# SPDX-License-Identifier: Apache-2.0
"""kjudge serve and kjudge judge killed at any moment under a stream of uploads: what was answered is
there, once, and judged once.

    KJUDGE_TEST_KILLS=500 serve_killed.py ServeKilled.test_killed_at_random     the long form
    KJUDGE_TEST_SEED=N                                                          draws what another run drew
"""

import http.client
import itertools
import json
import os
import random
import sys
import threading
import time

import _kjudge
import serve
from several_judges import ELSEWHERE, usable_elsewhere


class Uploader(threading.Thread):
    """Hands in as a client does: the same id again until it is answered. At least once."""

    def __init__(self, case, run, token, end):
        super().__init__(daemon=True)
        self.case, self.run_name, self.token, self.end = case, run, token, end
        self.answered = {}  # number by id
        self.repeated = 0
        self.problems = []

    def run(self):
        for turn in itertools.count():
            if self.end.is_set() and turn > 0:
                return
            # Most have the files of one before, whose verdict answers them: judging keeps up.
            body = self.case.upload(self.run_name, code=_kjudge.RIGHT + "# %s %d\n" % (self.run_name, turn // 8))
            while not self.hand_in(body):
                time.sleep(0.02)
            time.sleep(1.2)

    def hand_in(self, body):
        try:
            status, _, content = self.case.ask("POST", "/api/submissions", body, token=self.token)
        except (OSError, http.client.HTTPException):
            return False
        if status in (200, 201):
            self.answered[body["id"]] = json.loads(content)["number"]
            self.repeated += status == 200
        elif status not in (429, 503):
            self.problems.append((status, content))
        return status not in (429, 503)


class ServeKilled(serve.ServeCase):
    def setUp(self):
        super().setUp()
        if not usable_elsewhere():
            self.skipTest("no network namespaces here")

    def start_server(self):
        """Again and again: the port may not be free at once."""
        while True:
            server = self.start("serve", "results", "--challenge", self.challenge, "--listen",
                                "127.0.0.1:%d" % self.port, "--unsafe", "--access-log", os.devnull,
                                "--uploads-per-minute", "100000")
            if server.stdout.readline():
                return server
            server.communicate()
            time.sleep(0.05)

    def start_judge(self, before=()):
        return self.popen([*before, _kjudge.BINARY, "judge", "results", "--challenge", self.challenge, "--unsafe",
                           "--watch"], cwd=self.folder, env=self.environment)

    def rank(self):
        return self.run_kjudge("rank", "results", "--json")[0]

    def test_killed_at_random(self):
        kills = int(os.environ.get("KJUDGE_TEST_KILLS", "8"))
        seed = int(os.environ.get("KJUDGE_TEST_SEED", random.randrange(1 << 32)))
        print("seed", seed, file=sys.stderr)
        draw = random.Random(seed)
        first = self.serve("--uploads-per-minute", "100000")
        starts = {"serve": self.start_server, "judge": self.start_judge,
                  "judge elsewhere": lambda: self.start_judge(ELSEWHERE)}
        running = {"serve": first, "judge": starts["judge"](), "judge elsewhere": starts["judge elsewhere"]()}
        killed = dict.fromkeys(starts, 0)
        end = threading.Event()
        uploaders = [Uploader(self, "run-%d" % i, self.token("owner-%d" % i), end) for i in range(4)]
        for uploader in uploaders:
            uploader.start()
        for _ in range(kills):
            time.sleep(draw.uniform(0, 0.8))
            name = draw.choice(["serve", "serve", "judge", "judge elsewhere"])
            if running[name].poll() is not None:  # they end only by being killed
                self.fail("%s: %s" % (name, running[name].communicate()))
            running[name].kill()
            running[name].communicate()
            killed[name] += 1
            running[name] = starts[name]()
        end.set()
        for uploader in uploaders:
            uploader.join()
        for process in running.values():
            process.kill()
            process.communicate()
        self.assertEqual([problem for uploader in uploaders for problem in uploader.problems], [])
        answered = {one: number for uploader in uploaders for one, number in uploader.answered.items()}
        self.judge(timeout=7200)
        self.check_stored(answered)
        self.run_kjudge("fsck", "results")
        indexed = self.rank()
        for name in ("index.json", "scores.index"):
            os.remove(self.path("results", name))
        self.assertEqual(self.rank(), indexed)
        self.assertTrue(json.loads(indexed)["entries"])
        print("killed: %s; %d submissions, %d of them handed in again because the answer was lost" %
              (killed, len(answered), sum(uploader.repeated for uploader in uploaders)), file=sys.stderr)

    def check_stored(self, answered):
        stored = {}
        folder = self.path("results", "submissions")
        for name in os.listdir(folder):
            self.assertTrue(name.isdigit(), name)  # what killed ones began was swept away
            with open(os.path.join(folder, name, "submission.json")) as file:
                identity = json.load(file)
            self.assertNotIn(identity["id"], stored)
            stored[identity["id"]] = int(name)
            self.assertEqual(identity["run"].replace("run", "owner"), identity["owner"])
            self.assertEqual(os.listdir(os.path.join(folder, name, "evaluations")), ["1"])
            with open(os.path.join(folder, name, "evaluations", "1", "result.json")) as file:
                self.assertEqual(json.load(file)["verdict"], "accepted")
        self.assertEqual(stored, answered)


if __name__ == "__main__":
    _kjudge.main()
