# SPDX-License-Identifier: Apache-2.0
"""How many uploads kjudge serve takes, and how quickly: clients that hand in at a steady rate, each with
a token and a connection of its own. None may be lost; 99 % must be answered within 200 ms.

    serve_load.py [--clients 50] [--rate 200] [--seconds 60] [--stored N] [--evaluations N]

Runs build-dev/bin/kjudge, or KJUDGE_BINARY. With stored evaluations it asks for pages too, before.
"""
import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import rank_scale

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("KJUDGE_BINARY", os.path.join(ROOT, "build-dev", "bin", "kjudge"))
TARGET_MS = 200


class Client(threading.Thread):
    def __init__(self, port, token, number, options, begin):
        super().__init__()
        self.port, self.token, self.number, self.options, self.begin = port, token, number, options, begin
        self.times_ms, self.accepted, self.problems = [], [], []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        pause = self.options.clients / self.options.rate
        for turn in range(round(self.options.seconds / pause)):
            due = self.begin + (turn + self.number / self.options.clients) * pause
            time.sleep(max(0, due - time.monotonic()))
            # No two have the same content: nothing is answered from before.
            body = json.dumps({"id": str(uuid.uuid4()), "run": "client-%d" % self.number, "challenge": "softmax",
                               "file": "submission.py", "code": "# %d %d\n" % (self.number, turn) + "x = 1\n" * 500})
            sent = time.monotonic()
            try:
                connection.request("POST", "/api/submissions", body, {"Authorization": "Bearer " + self.token})
                answer = connection.getresponse()
                content = json.loads(answer.read())
                if answer.status == 201:
                    self.accepted.append((content["number"], content["id"]))
                else:
                    self.problems.append("%d %s" % (answer.status, content))
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.problems.append(repr(error))
                connection.close()
            # From when it was due: a server that holds everybody up does not hide it.
            self.times_ms.append(1000 * (time.monotonic() - max(sent if turn == 0 else due, due)))


def store_some(results, there, count):
    """Submissions that wait."""
    for number in range(there + 1, there + count + 1):
        folder = os.path.join(results, "submissions", str(number))
        os.makedirs(os.path.join(folder, "files"))
        with open(os.path.join(folder, "files", "submission.py"), "w") as file:
            file.write("# %d\n" % number)
        with open(os.path.join(folder, "submission.json"), "w") as file:
            json.dump({"format": "kjudge-submission/1", "id": str(uuid.uuid4()), "challenge": "softmax",
                       "run": "client-%d" % (number % 50), "name": "submission.py", "sha256": "%064x" % number,
                       "received": "2026-11-01T00:00:00Z", "owner": "client-%d" % (number % 50)}, file)


def ask_for_pages(port, count):
    """Prints how long one page after the other takes, a reader alone; the first request of each counts."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def get(path):
        sent = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            sys.exit("%s: %d" % (path, answer.status))
        return 1000 * (time.monotonic() - sent), body

    board = re.search(rb'href="(leaderboard/[^"]*)"', get("/")[1]).group(1).decode()
    for name, path in (("front page", lambda i: "/"), ("leaderboard", lambda i: "/" + board),
                       ("the same as JSON", lambda i: "/api/leaderboard/softmax"),
                       ("evaluation", lambda i: "/evaluation/%d.html" % (1 + i * 7919 % count)),
                       ("run", lambda i: "/run/run-%d.html" % i)):
        answers = [get(path(i)) for i in range(100)]
        times = sorted(ms for ms, _ in answers)
        print("%-16s median %.1f ms, p99 %.1f ms; %d KiB" % (name, times[50], times[98], len(answers[0][1]) // 1024))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rate", type=float, default=200, help="uploads a second, all clients together")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--stored", type=int, default=0, help="submissions that are there before")
    parser.add_argument("--evaluations", type=int, default=0, help="submissions with one that are there before")
    parser.add_argument("--runs", type=int, default=1000, help="of these")
    parser.add_argument("--shapes", type=int, default=1, help="of each evaluation")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kjudge-load-")
    results = os.path.join(folder, "results")
    try:
        tokens = [subprocess.run([BINARY, "token", "add", "client-%d" % i, "--results", results], check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()
                  for i in range(options.clients)]
        if options.evaluations:
            rank_scale.make(results, options)
        store_some(results, options.evaluations, options.stored)
        server = subprocess.Popen(
            [BINARY, "serve", results, "--challenge", os.path.join(ROOT, "packages", "softmax"), "--listen",
             "127.0.0.1:0", "--unsafe", "--uploads-per-minute", "100000", "--access-log", os.path.join(folder, "log")],
            stdout=subprocess.PIPE, text=True)
        started = time.monotonic()
        port = int(server.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        if options.evaluations:
            print("listens after %.1f s" % (time.monotonic() - started))
            ask_for_pages(port, options.evaluations)
        begin = time.monotonic() + 0.5
        clients = [Client(port, token, i, options, begin) for i, token in enumerate(tokens)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        took_s = time.monotonic() - begin
        with open("/proc/%d/status" % server.pid) as file:
            memory = next(line.split()[1] for line in file if line.startswith("VmHWM"))
        server.terminate()
        server.wait()
        times = sorted(t for client in clients for t in client.times_ms)
        problems = [p for client in clients for p in client.problems]
        lost = 0
        for number, name in (pair for client in clients for pair in client.accepted):
            try:
                with open(os.path.join(results, "submissions", str(number), "submission.json")) as file:
                    lost += json.load(file)["id"] != name
            except OSError:
                lost += 1
        p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
        print("%d uploads in %.1f s from %d clients, %d problems, %d lost; median %.1f ms, p99 %.1f ms, longest %.1f ms; "
              "server's memory %d MiB" % (len(times), took_s, options.clients, len(problems), lost, p50, p99, times[-1],
                                          int(memory) // 1024))
        for problem in sorted(set(problems))[:5]:
            print(problem)
        return 1 if problems or lost or p99 > TARGET_MS else 0
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
