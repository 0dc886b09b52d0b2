# SPDX-License-Identifier: Apache-2.0
"""submit.py against a small server: what it sends, prints and ends with."""

import ast
import base64
import http.server
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time

import _kjudge

SUBMIT = os.path.join(_kjudge.ROOT, "harness", "submit.py")
TOKEN = "kt-0123456789abcdef"
SCORE = {"ranked": True, "speedup": 1.5, "interval": {"low": 1.4, "high": 1.6},
         "shapes": [{"name": "64x48", "speedup": 1.5, "interval": {"low": 1.4, "high": 1.6}}]}
ACCEPTED = {"challenge": "softmax", "dtype": "float32", "gpu": "H200", "verdict": "accepted", "message": "",
            "shapes": [{"name": "64x48", "verdict": "accepted", "message": ""},
                       {"name": "test-3x5", "verdict": "accepted", "message": ""}],
            "score": SCORE, "rank": 2, "of": 17}
WRONG = {"challenge": "softmax", "verdict": "wrong_result", "message": "an output is wrong",
         "shapes": [{"name": "64x48", "verdict": "wrong_result", "message": "y[3][4] is \x1b[2J2"}],
         "score": {"ranked": False, "why_not": "64x48 failed", "shapes": []}}


class Contest:
    """A server that knows submission 42 and answers for it what a test lists, the last for ever."""

    def __init__(self, states=(), port=0):
        self.states = [self.submission(**state) for state in states]
        self.requests = []  # (method, path, Authorization, body)
        self.first = []  # (status, headers, bytes) of answers to give before any other
        contest = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.answer(None)

            def do_POST(self):
                self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def answer(self, body):
                contest.requests.append((self.command, self.path, self.headers["Authorization"], body))
                status, headers, content = contest.next_answer(self)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @staticmethod
    def submission(**fields):
        return dict({"number": 42, "id": "x", "run": "my-team", "challenge": "softmax", "poll_s": 0.01,
                     "url": "https://contest.example.org/submissions/42"}, **fields)

    def next_answer(self, request):
        if self.first:
            return self.first.pop(0)
        if request.headers["Authorization"] != "Bearer " + TOKEN:
            return 401, {}, json.dumps({"error": "unknown token " + request.headers["Authorization"]}).encode()
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return 201 if request.command == "POST" else 200, {}, json.dumps(state).encode()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


WAITING = {"state": "waiting", "position": 3}
DONE = {"state": "done", "evaluations": [ACCEPTED]}


class Submit(_kjudge.Case):
    # What kjudge's own client, which takes these tests over, says in words of its own.
    A_LINK = "secrets: a link"
    GOES_ON = "submit.py --status 42 --wait"
    BAD_PATIENCE = "argument --patience: "

    def contest(self, *states, port=0):
        contest = Contest(states, port)
        self.addCleanup(contest.stop)
        return contest

    def command(self, *arguments, server=None, token=TOKEN, script=SUBMIT):
        environment = {k: v for k, v in self.environment.items() if k != "KJUDGE_DRIVER"}
        environment["KERNELS_TOKEN"] = token
        if server:
            arguments += ("--server", server)
        self.assertNotIn(TOKEN, " ".join(arguments))
        return self.popen([sys.executable, script, *arguments], cwd=self.folder, env=environment)

    def submit(self, *arguments, status=0, **options):
        process = self.command(*arguments, **options)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, out + err)
        self.assertNotIn(TOKEN, out + err)
        return out, err

    def test_waits_and_prints_speedups_score_and_rank(self):
        contest = self.contest(WAITING, dict(WAITING, position=1), {"state": "judging"}, DONE)
        self.write("submission.py", "# mine\n")
        out, err = self.submit("--run", "my-team", "--challenge", "softmax", server=contest.url)
        lines = out.splitlines()
        self.assertEqual(lines[0], "https://contest.example.org/submissions/42")
        self.assertEqual(lines[1], "softmax float32 on H200: accepted")
        self.assertEqual(lines[2].split(), ["shape", "speedup", "interval", "verdict"])
        self.assertEqual(lines[3].split(), ["64x48", "1.500x", "[1.400,", "1.600]", "accepted"])
        self.assertEqual(lines[4].split(), ["test-3x5", "accepted"])
        self.assertEqual(lines[5:], ["score: 1.500x [1.400, 1.600]", "rank: 2 of 17"])
        for state in ("waiting, position 3 in the queue", "waiting, position 1 in the queue", "judging"):
            self.assertIn("kjudge: submission 42: %s\n" % state, err)
        method, path, authorization, body = contest.requests[0]
        self.assertEqual((method, path, authorization), ("POST", "/api/submissions", "Bearer " + TOKEN))
        self.assertRegex(body.pop("id"), r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertEqual(body, {"run": "my-team", "challenge": "softmax", "file": "submission.py",
                                "code": "# mine\n"})
        self.assertEqual({r[:3] for r in contest.requests[1:]},
                         {("GET", "/api/submissions/42", "Bearer " + TOKEN)})

    def test_contact_and_keep(self):
        contest = self.contest(DONE)
        self.write("fast.cu", "// mine\n")
        self.submit("fast.cu", "--run", "r", "--challenge", "all", "--contact", "me@example.org",
                    "--no-keep", server=contest.url)
        body = contest.requests[0][3]
        del body["id"]
        self.assertEqual(body, {"run": "r", "challenge": "all", "file": "submission.cu", "code": "// mine\n",
                                "contact": "me@example.org", "keep": False})

    def test_folder_becomes_an_archive(self):
        contest = self.contest(DONE)
        self.write("mine/submission.py", _kjudge.RIGHT)
        self.write("mine/sub/build.sh", "2")
        os.chmod(self.path("mine/sub/build.sh"), 0o755)
        for name in ("mine/.git/config", "mine/__pycache__/x.pyc", "mine/.secret"):
            self.write(name, "no")
        sent = []
        for _ in range(2):
            self.submit("mine", "--run", "r", "--challenge", "softmax", server=contest.url)
            sent.append(contest.requests[-1][3])
        self.assertEqual(sent[0]["archive"], sent[1]["archive"])
        self.assertEqual(sent[0]["file"], "submission.tar.gz")
        content = base64.b64decode(sent[0]["archive"])
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            self.assertEqual([(e.name, e.mode, e.mtime) for e in archive],
                             [("submission.py", 0o644, 0), ("sub/build.sh", 0o755, 0)])
        # kjudge takes what submit.py sends.
        with open(self.path("mine.tar.gz"), "wb") as file:
            file.write(content)
        result = self.evaluate("mine.tar.gz", "--challenge", self.small_challenge(), "--pairs", "1")
        self.assertEqual(result["verdict"], "accepted")

    def test_a_setuid_file_is_refused(self):
        self.write("mine/submission.py", _kjudge.RIGHT)
        self.write("mine/.a", "1")
        self.write("mine/a", "1")
        os.chmod(self.path("mine"), 0o2755)
        os.chmod(self.path("mine/.a"), 0o4755)
        for mode, status in ((0o1755, 75), (0o4755, 2), (0o2755, 2)):
            os.chmod(self.path("mine/a"), mode)
            _, err = self.submit("mine", "--run", "r", "--challenge", "c", "--patience", "0",
                                 server="http://127.0.0.1:9", status=status)
            self.assertEqual("a: a setuid or setgid bit; take it away with chmod ug-s" in err, status == 2)

    def test_folders_that_cannot_be_handed_in(self):
        os.mkdir(self.path("empty"))
        self.write("linked/submission.py", "1")
        os.symlink("/etc/passwd", self.path("linked", "secrets"))
        self.write("inner/submission.py/a.py", "1")
        for folder, why in (("empty", "no submission.py or submission.cu"), ("linked", self.A_LINK),
                            ("inner", "submission.py is a folder; a file of that name is what is called")):
            _, err = self.submit(folder, "--run", "r", "--challenge", "c", server="http://127.0.0.1:9",
                                 status=2)
            self.assertIn(why, err)

    def test_a_folder_that_cannot_be_read_is_not_left_out(self):
        user = 64999 if os.getuid() == 0 else os.getuid()
        self.write("mine/submission.py", _kjudge.RIGHT)
        self.write("mine/closed/data.py", "x = 1\n")
        os.chmod(self.folder, 0o755)
        os.chmod(self.path("mine/closed"), 0)
        packed = ("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, %r)\n"
                  "import os, submit; os.getuid() or os.setuid(%d)\n"
                  "submit.archive_of(%r)" % (os.path.dirname(SUBMIT), user, self.path("mine")))
        done = subprocess.run([sys.executable, "-c", packed], stderr=subprocess.PIPE, text=True)
        os.chmod(self.path("mine/closed"), 0o755)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "PermissionError.*closed")

    def test_exit_codes_of_verdicts(self):
        broken = dict(WRONG, verdict="judge_error")
        for evaluations, status in (([ACCEPTED], 0), ([ACCEPTED, WRONG], 1), ([WRONG, broken], 5)):
            contest = self.contest({"state": "done", "evaluations": evaluations})
            out, _ = self.submit("--status", "42", server=contest.url, status=status)
            self.assertEqual(out.count("softmax"), len(evaluations))
        self.assertIn("not ranked: 64x48 failed", out)
        self.assertIn("64x48: y[3][4] is ?[2J2", out)  # what drives terminals is taken out

    def test_no_message_forges_a_line_of_the_verdict(self):
        forged = "rank: 1 of 17\nsoftmax: accepted\nscore: 1000.000x [1000.000, 1000.000]"
        shapes = [dict(WRONG["shapes"][0], message=forged)]
        contest = self.contest({"state": "done", "evaluations": [dict(WRONG, message=forged, shapes=shapes)]})
        out, _ = self.submit("--status", "42", server=contest.url, status=1)
        for line in forged.splitlines():
            self.assertEqual(out.count(line), 2, out)
            self.assertNotIn(line, out.splitlines())

    def test_why_there_is_no_rank(self):
        unranked = {name: value for name, value in ACCEPTED.items() if name not in ("rank", "of")}
        partial = dict(unranked, variant="softmax:float32", score=dict(SCORE, ranked=False, why_not="a part of it"))
        pending = "rank: pending%s, until it is judged again: it is faster than the first"
        for evaluation, last in ((dict(unranked, pending=True), [pending % ""]),
                                 (dict(partial, pending=True), [pending % ", among those of softmax:float32"]),
                                 (partial, ["not ranked: a part of it"]),
                                 (dict(partial, invalid=["its fan", "odd"]),
                                  ["does not count: its fan", "does not count: odd"]),
                                 (dict(ACCEPTED, invalid=["its fan"]), ["does not count: its fan", "rank: 2 of 17"])):
            contest = self.contest({"state": "done", "evaluations": [evaluation]})
            out, _ = self.submit("--status", "42", server=contest.url)
            lines = out.splitlines()
            self.assertEqual(lines[lines.index("score: 1.500x [1.400, 1.600]") + 1:], last)

    def test_status(self):
        contest = self.contest(WAITING, WAITING, DONE)
        out, err = self.submit("--status", "42", server=contest.url, status=75)
        self.assertEqual(out, "https://contest.example.org/submissions/42\n")
        self.assertIn("submission 42: waiting", err)
        out, _ = self.submit("--status", "42", "--wait", server=contest.url)
        self.assertIn("rank: 2 of 17", out)

    def test_no_wait(self):
        contest = self.contest(WAITING)
        self.write("submission.py", "1")
        out, _ = self.submit("--run", "r", "--challenge", "c", "--no-wait", server=contest.url)
        self.assertEqual(out, "https://contest.example.org/submissions/42\n")
        self.assertEqual(len(contest.requests), 1)

    def test_json(self):
        contest = self.contest(WAITING, DONE)
        self.write("submission.py", "1")
        out, err = self.submit("--run", "r", "--challenge", "c", "--json", server=contest.url)
        self.assertEqual(json.loads(out), Contest.submission(**DONE))
        self.assertIn("https://contest.example.org/submissions/42", err)

    def test_tokens(self):
        contest = self.contest(DONE)
        for token, why in (("", "KERNELS_TOKEN is not set"), ("wrong-token", "unknown token Bearer ***")):
            out, err = self.submit("--status", "42", server=contest.url, token=token, status=4)
            self.assertEqual(out, "")
            self.assertIn(why, err)
        self.assertEqual(len(contest.requests), 1)

    def test_errors_of_the_server(self):
        contest = self.contest(DONE)
        for status, code in ((403, 4), (400, 2), (404, 2), (409, 2), (413, 3), (422, 3)):
            contest.first = [(status, {}, b'{"error": "because"}')]
            _, err = self.submit("--status", "42", server=contest.url, status=code)
            self.assertIn("because (status %d)" % status, err)
        for content in (b"<html>", b"[]", b'{"number": 42}', b'{"number": 1, "url": "u", "state": "done"}'):
            contest.first = [(200, {}, content)]
            _, err = self.submit("--status", "42", server=contest.url, status=6)
            self.assertIn("not the answer of a kjudge server", err)

    def test_a_redirection_does_not_get_the_token(self):
        contest, other = self.contest(DONE), self.contest(DONE)
        contest.first = [(302, {"Location": other.url + "/api/submissions/42"}, b"")]
        _, err = self.submit("--status", "42", server=contest.url, status=2)
        self.assertIn("sends elsewhere, to " + other.url, err)
        self.assertEqual(other.requests, [])

    def test_limits_are_waited_out(self):
        contest = self.contest(DONE)
        self.write("submission.py", "1")
        contest.first = [(429, {"Retry-After": "0"}, b'{"error": "one a minute"}'), (503, {}, b"")]
        _, err = self.submit("--run", "r", "--challenge", "c", server=contest.url)
        self.assertIn("one a minute (status 429); trying again", err)
        self.assertEqual(len({r[3]["id"] for r in contest.requests}), 1)  # the same submission
        contest.first = [(429, {"Retry-After": "86400"}, b'{"error": "ten a day"}')]
        _, err = self.submit("--run", "r", "--challenge", "c", server=contest.url, status=75)
        self.assertIn("ten a day (status 429); try again later", err)

    def test_a_server_that_is_not_there(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % free.getsockname()[1]
        _, err = self.submit("--status", "42", "--patience", "0", server=url, status=75)
        self.assertIn(url + " does not answer", err)

    def test_survives_a_restart(self):
        contest = self.contest(WAITING)
        self.write("submission.py", "1")
        process = self.command("--run", "r", "--challenge", "c", server=contest.url)
        self.wait_for(lambda: len(contest.requests) > 2, "waiting")
        contest.stop()
        time.sleep(0.3)  # some questions into the void
        self.contest(WAITING, {"state": "judging"}, DONE, port=contest.port)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("rank: 2 of 17", out)

    def test_stopping_it_stops_nothing(self):
        contest = self.contest(WAITING)
        self.write("submission.py", "1")
        process = self.command("--run", "r", "--challenge", "c", server=contest.url)
        self.wait_for(lambda: len(contest.requests) > 2, "waiting")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("the submission goes on: " + self.GOES_ON, err)
        self.assertEqual({r[0] for r in contest.requests[1:]}, {"GET"})

    def test_usage(self):
        contest = self.contest(DONE)
        self.write("submission.py", "1")
        for arguments, why in ((["--challenge", "c"], "say --run NAME"), (["--run", "r"], "say --challenge"),
                               (["--status", "x"], "invalid int value"), (["--frobnicate"], "unrecognized")):
            _, err = self.submit(*arguments, server=contest.url, status=2)
            self.assertIn(why, err)
        for server, why in ((None, "say --server URL"), ("ftp://x", "expected an http or https address")):
            _, err = self.submit("--status", "1", server=server, status=2)
            self.assertIn(why, err)
        self.assertEqual(contest.requests, [])

    def test_deeply_nested_answers(self):
        contest = self.contest(DONE)
        nested = b"[" * 100_000 + b"]" * 100_000
        for status in (200, 404):
            contest.first = [(status, {}, nested)]
            _, err = self.submit("--status", "42", server=contest.url, status=6)
            self.assertIn("not the answer of a kjudge server (nested too deeply", err)
        contest.first = [(503, {}, nested)]  # asked again like any other
        self.submit("--status", "42", server=contest.url)
        # Some depths can be read and not printed.
        for depth in (300, 900):
            answer = json.dumps(Contest.submission(**WAITING))[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"
            contest.first = [(200, {}, answer.encode())]
            process = self.command("--status", "42", "--json", server=contest.url)
            _, err = process.communicate(timeout=60)
            self.assertIn(process.returncode, (6, 75))
            self.assertNotIn("Traceback", err)

    def test_servers_that_are_no_address(self):
        for server, why in (("https://[bad", "no IPv6 address"), ("http://", "names no host"),
                            ("http://:80", "names no host"), ("http://127.0.0.1:abc", "not a port"),
                            ("http://127.0.0.1:99999", "not a port"), ("http://a..b", "not a host"),
                            ("http://h/a b", "no spaces"), ("http://h\n", "no spaces"),
                            ("http://h/\u00e9", "only ASCII")):
            _, err = self.submit("--status", "1", server=server, status=2)
            self.assertIn(why, err)
            self.assertNotIn("trying again", err)

    def test_a_password_in_the_address(self):
        for server in ("http://me:sesame@127.0.0.1:9", "http://me@127.0.0.1:9/a", "http://:sesame@127.0.0.1:9"):
            _, err = self.submit("--status", "1", server=server, status=2)
            self.assertIn("--server: an address has no user and password", err)
            self.assertNotIn("sesame", err)
        for server in ("http://127.0.0.1:9/?a=b", "http://127.0.0.1:9/#a"):
            _, err = self.submit("--status", "1", server=server, status=2)
            self.assertIn("without ? and #", err)

    def test_a_huge_retry_after(self):
        contest = self.contest(DONE)
        for digits in (20, 400, 5000):
            contest.first = [(503, {"Retry-After": "9" * digits}, b'{"error": "not now"}')]
            _, err = self.submit("--status", "42", server=contest.url, status=75)
            self.assertIn("not now (status 503); try again later", err)

    def test_answers_that_are_no_strict_json(self):
        """A byte order mark, other encodings, a name twice, NaN: as one client, so the other."""
        contest = self.contest(DONE)
        right = json.dumps(Contest.submission(state="done", evaluations=[ACCEPTED]))
        contest.first = [(200, {}, right.encode())]
        self.submit("--status", "42", server=contest.url)
        for wrong in (b"\xef\xbb\xbf" + right.encode(), right.encode("utf-16"), right.encode("utf-32-le"),
                      right.encode() + b"\0", right.encode().replace(b'"url"', b'"number": 1, "url"', 1),
                      right.encode().replace(b'"number"', b'"x": NaN, "number"', 1), b'"\xff"'):
            contest.first = [(200, {}, wrong)]
            _, err = self.submit("--status", "42", server=contest.url, status=6)
            self.assertIn("not the answer of a kjudge server", err)
            self.assertNotIn("Traceback", err)
        contest.first = [(422, {}, b'\xef\xbb\xbf{"error": "because"}')]
        _, err = self.submit("--status", "42", server=contest.url, status=3)
        self.assertNotIn("because", err)

    def test_evaluations_that_are_no_objects(self):
        contest = self.contest(DONE)
        for bad in (3, None, "accepted", [], {}, {"verdict": ["accepted"]}):
            for arguments in ([], ["--json"]):
                contest.first = [(200, {}, json.dumps(Contest.submission(
                    state="done", evaluations=[ACCEPTED, bad])).encode())]
                _, err = self.submit("--status", "42", *arguments, server=contest.url, status=6)
                self.assertIn("not the answer of a kjudge server (evaluations are no list", err)

    def test_patience_that_is_no_time(self):
        for patience in ("inf", "nan", "-1", "-inf", "soon"):
            _, err = self.submit("--status", "1", "--patience=" + patience, server="http://127.0.0.1:9",
                                 status=2)
            self.assertIn(self.BAD_PATIENCE, err)

    def test_a_file_that_is_not_there(self):
        contest = self.contest(DONE)
        for arguments, name in ((["nosuch.py"], "nosuch.py"), ([], "submission.py")):
            _, err = self.submit(*arguments, "--run", "r", "--challenge", "c", server=contest.url, status=2)
            self.assertIn("kjudge: %s: no such file or folder\n" % name, err)
        self.assertEqual(contest.requests, [])

    def test_a_fifo_is_not_waited_for(self):
        contest = self.contest(DONE)
        for name in ("pipe.py", "pipe.zip"):
            os.mkfifo(self.path(name))
            _, err = self.submit(name, "--run", "r", "--challenge", "c", server=contest.url, status=3)
            self.assertIn(name + ": not a regular file", err)
        self.assertEqual(contest.requests, [])

    def test_files_of_kinds_that_are_not_taken(self):
        contest = self.contest(DONE)
        for name in ("mine.ZIP", "mine.tar.xz", "mine.py.gz", "mine.txt", "mine"):
            self.write(name, "1")
            _, err = self.submit(name, "--run", "r", "--challenge", "c", server=contest.url, status=2)
            self.assertIn(name + ": not a file that can be handed in", err)
            self.assertIn("*.py, *.cu, *.tar, *.tar.gz, *.tgz, *.tar.zst, *.zip", err)
        self.assertEqual(contest.requests, [])

    def test_done_without_a_verdict(self):
        contest = self.contest({"state": "done", "evaluations": []})
        for arguments in ([], ["--json"]):
            _, err = self.submit("--status", "42", *arguments, server=contest.url, status=5)
            self.assertIn("submission 42: done, but the server gives no verdict", err)

    def test_a_redirection_to_nowhere(self):
        contest = self.contest(DONE)
        contest.first = [(302, {}, b"")]
        _, err = self.submit("--status", "42", server=contest.url, status=2)
        self.assertIn("sends elsewhere without saying where (status 302)", err)
        self.assertNotIn("None", err)

    def test_a_large_file_on_a_slow_line(self):
        """A socket's timeout is for all that one call sends: no call sends much."""
        contest = self.contest(DONE)
        self.write("submission.py", "#" * (3 << 20))
        script = self.write("measured.py", "import runpy, socket, sys\n"
                            "class Measured(socket.socket):\n"
                            "    def sendall(self, data, *more):\n"
                            "        assert len(data) <= 1 << 16, len(data)\n"
                            "        super().sendall(data, *more)\n"
                            "socket.socket = Measured\n"
                            "runpy.run_path(%r, run_name='__main__')\n" % SUBMIT)
        self.submit("--run", "r", "--challenge", "c", "--patience", "0", server=contest.url, script=script)
        self.assertEqual(len(contest.requests[0][3]["code"]), 3 << 20)

    def test_what_the_terminal_cannot_show(self):
        contest = self.contest({"state": "done", "evaluations": [dict(WRONG, message="naïve 🙂")]})
        self.environment["PYTHONIOENCODING"] = "ascii"
        out, err = self.submit("--status", "42", server=contest.url, status=1)
        self.assertNotIn("Traceback", err)
        self.assertRegex(out, r"na(ï|\\xef)ve (🙂|\\U0001f642)")

    def test_python_that_is_too_old(self):
        for name in ("submit.py", "harness.py"):
            path = os.path.join(_kjudge.ROOT, "harness", name)
            code = ("import runpy, sys; sys.version_info = (3, 8, 1, 'final', 0); sys.argv = [%r, 'submission.py'];"
                    "runpy.run_path(%r, run_name='__main__')" % (path, path))
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                  env=dict(os.environ, KJUDGE=_kjudge.BINARY))
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("this Python is 3.8", done.stderr)
            self.assertIn("needs 3.9 or newer\n", done.stderr)

    def test_old_python_reads_it(self):
        for name in ("submit.py", "harness.py"):
            with open(os.path.join(_kjudge.ROOT, "harness", name)) as file:
                ast.parse(file.read(), name, feature_version=(3, 9))


if __name__ == "__main__":
    _kjudge.main()
