# SPDX-License-Identifier: Apache-2.0
"""kjudge serve and kjudge judge killed, stopped or without room on the disk at any moment under a
stream of uploads: what was answered is there, once, and judged once. The long forms:

    KJUDGE_TEST_KILLS=500 serve_killed.py ServeKilled.test_killed_at_random
    KJUDGE_TEST_STOPS=100 serve_killed.py ServeKilled.test_stopped_past_its_lease
    KJUDGE_TEST_FULL=100 serve_killed.py ServeKilled.test_a_disk_that_is_full_now_and_then
    KJUDGE_TEST_SEED=N    draws what another run drew
"""

import contextlib
import ctypes
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import sys
import threading
import time

import _kjudge
import serve
from several_judges import ELSEWHERE, usable_elsewhere

CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 1 << 18, 2


def mount_call(name, *arguments):
    return getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == 0


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
                time.sleep(0.1)
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
        self.lease = "120"
        self.mounted = False
        self.logs = itertools.count()

    def tearDown(self):
        if self.mounted:
            if not self.is_well():
                shutil.copytree(self.path("results"), self.path("results-kept"), symlinks=True)
            mount_call("umount2", self.path("results").encode(), MNT_DETACH)
        super().tearDown()

    def is_well(self):
        result = self._outcome.result
        return not any(test is self for test, _ in result.failures + result.errors)

    def popen(self, command, **options):
        """What those say that go on goes to a file, for nobody reads a pipe meanwhile."""
        if "serve" not in command and "--watch" not in command:
            return super().popen(command, **options)
        with open(self.path("%d.err" % next(self.logs)), "w") as log:
            process = super().popen(command, stderr=log, **options)
        process.log = log.name
        return process

    def said(self, process):
        with open(process.log) as file:
            return file.read()

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
                           "--watch", "--lease", self.lease], cwd=self.folder, env=self.environment)

    def rank(self):
        return self.run_kjudge("rank", "results", "--json")[0]

    def under_uploads(self, disturb):
        """`disturb` happens to a server and two judges while clients hand in; then all is judged.
        It has what runs by name, what starts it again, and what draws."""
        seed = int(os.environ.get("KJUDGE_TEST_SEED", random.randrange(1 << 32)))
        print("seed", seed, file=sys.stderr)
        first = self.serve("--uploads-per-minute", "100000")
        starts = {"serve": self.start_server, "judge": self.start_judge,
                  "judge elsewhere": lambda: self.start_judge(ELSEWHERE)}
        running = {"serve": first, "judge": starts["judge"](), "judge elsewhere": starts["judge elsewhere"]()}
        end = threading.Event()
        uploaders = [Uploader(self, "run-%d" % i, self.token("owner-%d" % i), end) for i in range(4)]
        for uploader in uploaders:
            uploader.start()
        disturb(running, starts, random.Random(seed))
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
        os.remove(self.path("results/scores.index"))
        self.assertEqual(self.rank(), indexed)
        self.assertTrue(json.loads(indexed)["entries"])
        print("%d submissions, %d of them handed in again because the answer was lost" %
              (len(answered), sum(uploader.repeated for uploader in uploaders)), file=sys.stderr)

    def assert_runs(self, name, process):
        if process.poll() is not None:  # they end only by being killed
            self.fail("%s: %d, %s" % (name, process.returncode, self.said(process)))

    def test_killed_at_random(self):
        killed = dict.fromkeys(("serve", "judge", "judge elsewhere"), 0)

        def kill(running, starts, draw):
            for _ in range(int(os.environ.get("KJUDGE_TEST_KILLS", "8"))):
                time.sleep(draw.uniform(0, 0.8))
                name = draw.choice(["serve", "serve", "judge", "judge elsewhere"])
                self.assert_runs(name, running[name])
                running[name].kill()
                running[name].communicate()
                killed[name] += 1
                running[name] = starts[name]()
        self.under_uploads(kill)
        print("killed:", killed, file=sys.stderr)

    def test_stopped_past_its_lease(self):
        self.lease = "1"
        told = []

        def stop(running, starts, draw):
            for _ in range(int(os.environ.get("KJUDGE_TEST_STOPS", "3"))):
                time.sleep(draw.uniform(0, 0.8))
                name = draw.choice(["serve", "judge", "judge elsewhere"])
                self.assert_runs(name, running[name])
                running[name].send_signal(signal.SIGSTOP)
                time.sleep(draw.uniform(0.5, 3))
                running[name].send_signal(signal.SIGCONT)
            for name in ("judge", "judge elsewhere"):
                self.assert_runs(name, running[name])
                running[name].terminate()  # a job in the background may have come with SIGINT ignored
                process = running.pop(name)
                process.communicate()
                told.append(self.said(process))
        self.under_uploads(stop)
        print("%d verdicts came too late" % sum(text.count("another judge took over") for text in told),
              file=sys.stderr)

    def test_a_disk_that_is_full_now_and_then(self):
        # For this process and those that it starts, and gone with it.
        os.mkdir(self.path("results"))
        if not (mount_call("unshare", CLONE_NEWNS) and
                mount_call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None) and
                mount_call("mount", b"tmpfs", self.path("results").encode(), b"tmpfs", 0, b"size=256m")):
            self.skipTest("nothing can be mounted here: " + os.strerror(ctypes.get_errno()))
        self.mounted = True
        ballast = self.path("results", ".ballast")
        ends = []

        def fill(running, starts, draw):
            for _ in range(int(os.environ.get("KJUDGE_TEST_FULL", "3"))):
                time.sleep(draw.uniform(0, 1))
                with open(ballast, "wb", buffering=0) as file:
                    with contextlib.suppress(OSError):
                        while file.write(bytes(1 << 16)):
                            pass
                time.sleep(draw.uniform(0.5, 2))
                os.remove(ballast)
                # As cron would: a judge that cannot write says so and ends; the server does not.
                self.assert_runs("serve", running["serve"])
                for name in ("judge", "judge elsewhere"):
                    if running[name].poll() is not None:
                        ends.append((self.said(running[name]), running[name].returncode))
                        running[name] = starts[name]()
        self.under_uploads(fill)
        for err, status in ends:
            self.assertEqual(status, 6, err)
            self.assertIn("No space left on device", err)
        print("%d judges found no room and ended" % len(ends), file=sys.stderr)

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
