# SPDX-License-Identifier: Apache-2.0
"""kjudge serve and kjudge judge killed at any moment under a stream of uploads: what was answered is
there, once, and judged once.

    KJUDGE_TEST_KILLS=500 serve_killed.py ServeKilled.test_killed_at_random     the long form
"""

import http.client
import json
import os
import random
import sys
import threading
import time

import _kjudge
import serve


class Uploader(threading.Thread):
    """Hands in as a client does: the same id again until it is answered."""

    def __init__(self, case, run, token, end):
        super().__init__()
        self.case, self.run_name, self.token, self.end = case, run, token, end
        self.answered = {}  # number by id
        self.repeated = 0
        self.problems = []

    def run(self):
        while not self.end.is_set():
            body = self.case.upload(self.run_name)
            while True:
                try:
                    status, _, content = self.case.ask("POST", "/api/submissions", body, token=self.token)
                except (OSError, http.client.HTTPException):
                    time.sleep(0.02)
                else:
                    if status in (200, 201):
                        self.answered[body["id"]] = json.loads(content)["number"]
                        self.repeated += status == 200
                        break
                    if status not in (429, 503):
                        self.problems.append((status, content))
                        break
                    time.sleep(0.05)
            time.sleep(0.2)


class ServeKilled(serve.ServeCase):
    def start_server(self, port):
        """Again and again: the port may not be free at once."""
        while True:
            server = self.start("serve", "results", "--challenge", self.challenge, "--listen", "127.0.0.1:%d" % port,
                                "--unsafe", "--access-log", os.devnull, "--uploads-per-minute", "100000")
            if server.stdout.readline():
                return server
            server.communicate()
            time.sleep(0.05)

    def test_killed_at_random(self):
        kills = int(os.environ.get("KJUDGE_TEST_KILLS", "25"))
        seed = random.randrange(1 << 32)
        print("seed", seed, file=sys.stderr)
        draw = random.Random(seed)
        tokens = [self.token("owner-%d" % i) for i in range(4)]
        server = self.serve("--uploads-per-minute", "100000")
        port, end = self.port, threading.Event()
        uploaders = [Uploader(self, "run-%d" % i, token, end) for i, token in enumerate(tokens)]
        for uploader in uploaders:
            uploader.start()
        judge = None
        try:
            for kill in range(kills):
                if judge is None:
                    judge = self.start("judge", "results", "--challenge", self.challenge, "--unsafe", "--watch")
                time.sleep(draw.uniform(0, 0.8))
                if kill % 4 == 3:
                    judge.kill()
                    judge.communicate()
                    judge = None
                else:
                    server.kill()
                    server.communicate()
                    server = self.start_server(port)
        finally:
            end.set()
            for uploader in uploaders:
                uploader.join()
            if judge is not None:
                judge.kill()
                judge.communicate()
            server.terminate()
            server.communicate()
        self.assertEqual([problem for uploader in uploaders for problem in uploader.problems], [])
        answered = {one: number for uploader in uploaders for one, number in uploader.answered.items()}
        self.judge()
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
        self.assertEqual(stored, answered)
        self.assertGreater(len(stored), kills // 4)
        self.run_kjudge("fsck", "results")
        print("%d kills, %d submissions, %d of them handed in again because the answer was lost" %
              (kills, len(stored), sum(uploader.repeated for uploader in uploaders)), file=sys.stderr)


if __name__ == "__main__":
    _kjudge.main()
