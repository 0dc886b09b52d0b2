# SPDX-License-Identifier: Apache-2.0
"""kjudge serve, with submit.py and kjudge submit as its clients: who may hand in what, what becomes
of it, and that every answer is one that openapi.json describes."""

import base64
import http.client
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import urllib.parse
import uuid

import jsonschema

import _kjudge

SUBMIT = os.path.join(_kjudge.ROOT, "harness", "submit.py")
with open(os.path.join(_kjudge.ROOT, "lib", "web", "server", "openapi.json")) as file:
    OPENAPI = json.load(file)


def operation_of(method, path):
    """What openapi.json says of a request; None where it says nothing."""
    for template, operations in OPENAPI["paths"].items():
        pattern = "".join("[^/]+" if part.startswith("{") else re.escape(part)
                          for part in re.split(r"(\{[a-z]+\})", template))
        if re.fullmatch(pattern, path):
            return operations.get({"HEAD": "get"}.get(method, method.lower()))
    return None


def check_answer(method, path, status, headers, body):
    """Fails where an answer is none of those that openapi.json describes."""
    operation = operation_of(method, path)
    if operation is None or (status in (405, 431) and str(status) not in operation["responses"]):
        answer = OPENAPI["components"]["responses"]["Bad"] if path.startswith("/api") else None
    else:
        answer = operation["responses"][str(status)]
        if "$ref" in answer:
            answer = OPENAPI["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    if answer is None:
        return
    content = answer.get("content")
    if content is None:
        assert body == b"", body
        return
    (kind, described), = content.items()
    assert headers["Content-Type"] == kind, headers["Content-Type"]
    if method == "HEAD":
        assert body == b"", body
    elif kind == "application/json":
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema",
                  "components": OPENAPI["components"], **described["schema"]}
        jsonschema.Draft202012Validator(schema).validate(json.loads(body))
    for name in answer.get("headers", {}):
        assert headers[name] is not None, name


class ServeCase(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.challenge = self.small_challenge()

    def token(self, name):
        return self.run_kjudge("token", "add", name, "--results", "results")[0].strip()

    def serve(self, *arguments, listen="127.0.0.1:0", challenge=None, under=()):
        """Starts one; returns it once it listens. Its port is self.port."""
        server = self.popen([*under, _kjudge.BINARY, "serve", "results", "--challenge", challenge or self.challenge,
                             "--listen", listen, "--unsafe", "--access-log", self.path("access.log"), *arguments],
                            cwd=self.folder, env=self.environment)
        line = server.stdout.readline()
        self.assertRegex(line, r"^http://127\.0\.0\.1:[0-9]+/\n$")
        self.url = line.strip().rstrip("/")
        self.port = int(self.url.rpartition(":")[2])
        return server

    def stop(self, server, number=signal.SIGTERM):
        server.send_signal(number)
        out, err = server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0, out + err)
        return err

    def ask(self, method, path, body=None, token=None, headers=None):
        """(status, headers, body); held to openapi.json."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = "Bearer " + token
        if isinstance(body, dict):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        check_answer(method, path, answer.status, answer.headers, content)
        return answer.status, answer.headers, content

    def ask_json(self, method, path, *arguments, status=200, **more):
        found, _, body = self.ask(method, path, *arguments, **more)
        self.assertEqual(found, status, body)
        return json.loads(body)

    def upload(self, run="my-team", code=_kjudge.RIGHT, **fields):
        body = {"id": str(uuid.uuid4()), "run": run, "challenge": "softmax", "file": "submission.py", "code": code}
        body.update(fields)
        return {name: value for name, value in body.items() if value is not None}

    def client(self, *arguments, token, script=True, **environment):
        command = [sys.executable, SUBMIT] if script else [_kjudge.BINARY, "submit"]
        return self.popen([*command, *arguments], cwd=self.folder,
                          env=dict(self.environment, KERNELS_TOKEN=token, **environment))

    def finish(self, process, status=0):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, out + err)
        return out, err

    def judge(self, *arguments, **options):
        return self.run_kjudge("judge", "results", "--challenge", self.challenge, "--unsafe", *arguments, **options)


class Serve(ServeCase):
    def test_from_upload_to_rank(self):
        token = self.token("Ada")
        server = self.serve()
        self.write("submission.py", _kjudge.RIGHT)
        client = self.client("--run", "my-team", "--challenge", "softmax", "--server", self.url, token=token)
        first = client.stdout.readline()
        self.assertEqual(first, self.url + "/evaluation/1.html\n")
        path = urllib.parse.urlsplit(first.strip()).path
        status, _, page = self.ask("GET", path)  # at once, before anybody judged
        self.assertEqual(status, 200)
        self.assertIn(b"my-team", page)
        self.judge()
        out, err = self.finish(client)
        self.assertIn("submission 1: waiting", err)
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^softmax float32: accepted$")
        self.assertEqual(lines[1].split(), ["shape", "speedup", "interval", "verdict"])
        self.assertRegex(lines[-2], r"^score: [0-9.]+x \[[0-9.]+, [0-9.]+\]$")
        self.assertEqual(lines[-1], "rank: 1 of 1")
        self.assertIn(b"accepted", self.ask("GET", path)[2])
        board = self.ask_json("GET", "/api/leaderboard/softmax")["boards"][0]
        self.assertEqual([(row["run"], row["rank"], row["submission"]) for row in board["rows"]], [("my-team", 1, 1)])
        ranked = json.loads(self.run_kjudge("rank", "results", "--json")[0])
        self.assertIn(str(board["rows"][0]["speedup"]), json.dumps(ranked))
        for page in (board["url"], self.url + "/", self.ask_json("GET", "/api/challenges")["challenges"][0]["url"]):
            self.assertEqual(self.ask("GET", urllib.parse.urlsplit(page).path)[0], 200, page)
        self.run_kjudge("invalidate", "results", "--run", "my-team", "--reason", "its fan was off")
        self.wait_for(lambda: self.ask_json("GET", "/api/submissions/1", token=token)["evaluations"][0].get("invalid")
                      == ["its fan was off"], "reason")
        self.assertNotIn("rank", self.ask_json("GET", "/api/submissions/1", token=token)["evaluations"][0])
        self.stop(server)
        self.run_kjudge("fsck", "results")

    def test_tokens(self):
        ada, grace = self.token("Ada"), self.token("Grace")
        server = self.serve()
        self.assertEqual(self.ask_json("POST", "/api/submissions", self.upload(), token=ada, status=201)["number"], 1)
        for wrong in (None, "", "kjt_0", ada + "0", ada[:-1]):
            status, headers, _ = self.ask("POST", "/api/submissions", self.upload(), token=wrong)
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertEqual(self.ask("GET", "/api/submissions/1", token=wrong)[0], 401)
        self.assertEqual(self.ask("GET", "/api/submissions/1", token=grace)[0], 403)
        self.assertEqual(self.ask("GET", "/api/submissions/2", token=grace)[0], 404)
        # A run is whose it was first, however its letters are written.
        problem = self.ask_json("POST", "/api/submissions", self.upload("My-TEAM"), token=grace, status=409)
        self.assertIn("belongs to somebody else", problem["error"])
        self.ask_json("POST", "/api/submissions", self.upload("My-TEAM", "2"), token=ada, status=201)
        self.assertEqual(self.ask_json("GET", "/api/submissions/2", token=ada)["run"], "my-team")
        self.run_kjudge("token", "revoke", "ada", "--results", "results")
        self.assertEqual(self.ask("GET", "/api/submissions/1", token=ada)[0], 401)
        again = self.token("Ada")
        self.assertEqual(self.ask_json("GET", "/api/submissions/1", token=again)["number"], 1)
        log = self.stop(server)
        with open(self.path("access.log")) as file:
            log += file.read()
        for token in (ada, grace, again):
            self.assertNotIn(token[4:], log)
        self.assertRegex(log, r"(?m)^\S+Z 127\.0\.0\.1 Ada POST /api/submissions 201 [0-9]+ [0-9.]+$")

    def test_no_traceback_shows_code_that_is_not_to_be_seen(self):
        shutil.rmtree(self.challenge)
        self.challenge = self.small_challenge(publish_code="all")
        raising = "import warnings\nwarnings.warn('careful')  # a secret line\nraise ValueError('it failed')  # of mine\n"
        token = self.token("Ada")
        server = self.serve()
        for run, more in (("open", {}), ("shy", {"publish": False}), ("gone", {"keep": False})):
            self.ask_json("POST", "/api/submissions", self.upload(run, raising + "# " + run, **more), token=token,
                          status=201)
        self.judge()
        for number, run in enumerate(("open", "shy", "gone"), 1):
            def done():
                return self.ask_json("GET", "/api/submissions/%d" % number, token=token)
            self.wait_for(lambda: done()["state"] == "done", "verdict")
            evaluation = done()["evaluations"][0]
            self.assertIn("it failed", evaluation["message"])
            page = self.ask("GET", "/evaluation/%d.html" % number)[2].decode()
            self.assertIn("it failed", page)
            self.assertEqual("of mine" in page, run == "open", page)
            self.assertEqual("../code/%d.html" % number in page, run == "open", page)
            self.assertEqual("of mine" in evaluation.get("log", ""), run != "gone")
            self.assertEqual(self.ask("GET", "/code/%d.html" % number)[0], 200 if run == "open" else 404)
            with open(self.path("results/submissions/%d/evaluations/1/log.txt" % number)) as file:
                self.assertEqual("of mine" in file.read(), run != "gone")
            with open(self.path("results/submissions/%d/evaluations/1/result.json" % number)) as file:
                self.assertEqual("of mine" in file.read(), run != "gone")
        # Whoever handed in has it, by both clients.
        for number, there in ((2, True), (3, False)):
            out, _ = self.finish(self.client("--status", str(number), "--server", self.url, token=token), status=1)
            self.assertEqual("of mine" in out, there, out)
            again, _ = self.run_kjudge("status", str(number), "--server", self.url, KERNELS_TOKEN=token, status=1)
            self.assertEqual(again, out)
        self.stop(server)
        self.run_kjudge("export", "results", "-o", "out.zst")
        told = subprocess.run(["zstd", "-dc", self.path("out.zst")], stdout=subprocess.PIPE, check=True).stdout.decode()
        lines = [json.loads(line) for line in told.splitlines()]
        self.assertEqual([("files" in line, line.get("publish", True), line.get("keep", True)) for line in lines
                          if line["kind"] == "submission"],
                         [(True, True, True), (False, False, True), (False, True, False)])
        self.assertEqual(["of mine" in line["result"]["log"] for line in lines if line["kind"] == "evaluation"],
                         [True, False, False])

    def test_an_id_that_was_used_for_other_code_is_a_conflict(self):
        token = self.token("Ada")
        server = self.serve()
        body = self.upload()
        self.ask_json("POST", "/api/submissions", body, token=token, status=201)
        self.ask_json("POST", "/api/submissions", body, token=token, status=200)
        for change in ({"code": "other"}, {"run": "another"}, {"keep": False}, {"publish": False}):
            problem = self.ask_json("POST", "/api/submissions", dict(body, **change), token=token, status=409)
            self.assertIn("draw another", problem["error"])
        self.assertEqual(os.listdir(self.path("results/submissions")), ["1"])
        self.stop(server)
        server = self.serve()  # which knows what was there before
        self.ask_json("POST", "/api/submissions", dict(body, code="other"), token=token, status=409)
        self.stop(server)

    def test_a_refused_request_is_logged_with_its_name(self):
        token = self.token("Ada")
        server = self.serve()
        self.ask("POST", "/api/submissions", {"id": "x"}, token=token)
        self.assertEqual(self.ask("GET", "/api/submissions/7", token=token)[0], 404)
        status, headers, _ = self.ask("PUT", "/api/submissions", {}, token=token)
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        status, headers, _ = self.ask("DELETE", "/index.html")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        self.stop(server)
        with open(self.path("access.log")) as file:
            log = file.read()
        self.assertRegex(log, r" Ada POST /api/submissions 400 ")
        self.assertRegex(log, r" Ada GET /api/submissions/7 404 ")

    def test_what_waits_for_the_same_files_has_a_position(self):
        ada, grace = self.token("Ada"), self.token("Grace")
        server = self.serve()
        for number in range(3):
            self.ask_json("POST", "/api/submissions", self.upload("run-%d" % number, _kjudge.RIGHT + "#%d" % number),
                          token=ada, status=201)
        self.ask_json("POST", "/api/submissions", self.upload("graces", _kjudge.RIGHT + "#0"), token=grace, status=201)
        self.ask_json("POST", "/api/submissions", self.upload("graces", "other"), token=grace, status=201)
        # Fair between persons, not runs: Grace's other one comes before Ada's second.
        wanted = {1: 1, 5: 2, 2: 3, 3: 4, 4: 2}
        self.wait_for(lambda: wanted == {
            number: self.ask_json("GET", "/api/submissions/%d" % number, token=grace if number > 3 else ada).get("position")
            for number in wanted}, "positions")
        self.stop(server)

    def test_runs_of_a_folder_are_the_organizers(self):
        self.write("from/baseline.py", _kjudge.RIGHT)
        self.judge("--from", "from")
        token = self.token("Ada")
        server = self.serve()
        self.ask_json("POST", "/api/submissions", self.upload("Baseline"), token=token, status=409)
        self.stop(server)

    def test_runs_that_were_lost_go_to_no_other_token(self):
        ada, grace = self.token("Ada"), self.token("Grace")
        server = self.serve()
        self.ask_json("POST", "/api/submissions", self.upload(), token=ada, status=201)
        self.ask_json("POST", "/api/submissions", self.upload(code="1"), token=ada, status=201)
        self.stop(server)
        self.run_kjudge("rank", "results")  # which writes the index
        shutil.rmtree(self.path("results/runs"))
        shutil.rmtree(self.path("results/submissions/2"))
        self.serve()
        self.ask_json("POST", "/api/submissions", self.upload(code="2"), token=grace, status=409)
        # Nor does another submission get the number of a lost one.
        answer = self.ask_json("POST", "/api/submissions", self.upload(code="3"), token=ada, status=201)
        self.assertEqual(answer["number"], 3)

    def test_the_same_id_is_the_same_submission(self):
        ada, grace = self.token("Ada"), self.token("Grace")
        server = self.serve()
        body = self.upload()
        first = self.ask_json("POST", "/api/submissions", body, token=ada, status=201)
        self.assertEqual(self.ask_json("POST", "/api/submissions", body, token=ada, status=200), first)
        self.ask_json("POST", "/api/submissions", dict(body, run="other"), token=grace, status=409)
        server.kill()
        server.communicate()
        self.serve()
        self.assertEqual(self.ask_json("POST", "/api/submissions", body, token=ada, status=200)["number"], 1)
        # Many at once, also before any is answered.
        body = self.upload()
        found = []
        threads = [threading.Thread(target=lambda: found.append(
            self.ask("POST", "/api/submissions", body, token=ada))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({json.loads(answer[2])["number"] for answer in found}, {2})
        self.assertEqual(sorted(os.listdir(self.path("results/submissions"))), ["1", "2"])

    def test_archives(self):
        token = self.token("Ada")
        server = self.serve()
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            for name, text in (("submission.py", _kjudge.RIGHT), ("sub/more.py", "1")):
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        packed = base64.b64encode(made.getvalue()).decode()
        answer = self.ask_json("POST", "/api/submissions", self.upload(
            code=None, archive=packed, file="mine.tar.gz", contact="ada@example.org"), token=token, status=201)
        self.assertEqual(answer["file"], "mine.tar.gz")
        with open(self.path("results/submissions/1/files/sub/more.py")) as file:
            self.assertEqual(file.read(), "1")
        with open(self.path("results/submissions/1/submission.json")) as file:
            stored = json.load(file)
        self.assertEqual((stored["contact"], stored["owner"]), ("ada@example.org", "Ada"))
        for archive, name in ((packed[:100] + "====", "a.tar.gz"), (packed, "a.rar")):
            self.ask_json("POST", "/api/submissions", self.upload(code=None, archive=archive, file=name),
                          token=token, status=400)
        problem = self.ask_json("POST", "/api/submissions", self.upload(
            code=None, archive=base64.b64encode(b"no archive at all").decode(), file="a.tar.gz"), token=token,
            status=422)
        self.assertIn("a.tar.gz", problem["error"])
        self.stop(server)
        self.assertEqual(sorted(os.listdir(self.path("results/submissions"))), ["1"])

    def test_clients_survive_a_restart(self):
        token = self.token("Ada")
        server = self.serve()
        self.write("submission.py", _kjudge.RIGHT)
        client = self.client("--run", "r", "--challenge", "softmax", "--server", self.url, token=token)
        client.stdout.readline()
        server.kill()
        server.communicate()
        self.judge()
        self.serve(listen="127.0.0.1:%d" % self.port)
        out, _ = self.finish(client)
        self.assertIn("rank: 1 of 1", out)

    def test_all_challenges(self):
        other = self.path("other")
        subprocess.run(["cp", "-r", self.challenge, other], check=True)
        with open(os.path.join(other, "challenge.json")) as file:
            challenge = json.load(file)
        challenge["name"] = "softmax-2"
        with open(os.path.join(other, "challenge.json"), "w") as file:
            json.dump(challenge, file)
        token = self.token("Ada")
        server = self.serve("--challenge", other)
        self.write("submission.py", _kjudge.RIGHT)
        client = self.client("--run", "r", "--challenge", "all", "--server", self.url, token=token)
        client.stdout.readline()
        self.judge()
        self.wait_for(lambda: b"accepted" in self.ask("GET", "/evaluation/1.html")[2], "page")
        self.assertEqual(self.ask_json("GET", "/api/submissions/1", token=token)["state"], "waiting")
        self.run_kjudge("judge", "results", "--challenge", other, "--unsafe")
        out, _ = self.finish(client)
        self.assertEqual(out.count("rank: 1 of 1"), 2)
        self.assertIn("softmax float32: accepted", out)
        self.assertIn("softmax-2 float32: accepted", out)
        self.stop(server)
        self.run_kjudge("fsck", "results")

    def test_files_that_are_not_to_be_kept(self):
        token = self.token("Ada")
        server = self.serve()
        self.ask_json("POST", "/api/submissions", self.upload(keep=False, challenge="all"), token=token, status=400)
        self.ask_json("POST", "/api/submissions", self.upload(code="# kept\n" + _kjudge.RIGHT), token=token, status=201)
        self.ask_json("POST", "/api/submissions", self.upload("secret", keep=False), token=token, status=201)
        self.judge()
        self.wait_for(lambda: self.ask_json("GET", "/api/submissions/2", token=token)["state"] == "done", "verdict")
        evaluation, = self.ask_json("GET", "/api/submissions/2", token=token)["evaluations"]
        self.assertEqual(evaluation["verdict"], "accepted")
        self.assertIn("unverified", evaluation["score"]["why_not"])
        self.assertNotIn("rank", evaluation)
        self.assertEqual(self.ask_json("GET", "/api/submissions/1", token=token)["evaluations"][0]["rank"], 1)
        board = self.ask_json("GET", "/api/leaderboard/softmax")["boards"][0]
        self.assertEqual([[row["run"] for row in rows] for rows in (board["rows"], board["unranked"])],
                         [["my-team"], ["secret"]])
        out, err = self.run_kjudge("rank", "results")
        self.assertNotIn("secret", out)
        self.assertIn("1 submission is unverified, and not ranked: the files were not to be kept: 2", err)
        self.assertEqual(json.loads(self.run_kjudge("rank", "results", "--json")[0])["unverified"], [2])
        for page in ("/evaluation/2.html", "/run/secret.html", "/index.html"):
            self.assertIn(b">unverified<", self.ask("GET", page)[2], page)
        self.assertEqual(sorted(os.listdir(self.path("results/submissions/2"))),
                         ["claims", "evaluations", "submission.json"])
        self.assertNotIn("bundle.kjb", os.listdir(self.path("results/submissions/2/evaluations/1")))
        for folder, _, files in os.walk(self.path("results/blobs")):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                self.assertTrue(content.startswith(b"# kept") or content[:3] == b"KJB" or b"def prepare" not in content)
                self.assertGreater(os.stat(os.path.join(folder, name)).st_nlink, 1)
        self.judge()  # nothing waits
        self.stop(server)
        self.run_kjudge("fsck", "results")

    def test_a_full_disk(self):
        token = self.token("Ada")
        own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        script = ("mkdir small && mount -t tmpfs -o size=2m tmpfs small && mv results small/ && exec \"$@\"")
        server = self.popen(
            [*own, "sh", "-ec", script, "sh", _kjudge.BINARY, "serve", "small/results", "--challenge", self.challenge,
             "--listen", "127.0.0.1:0", "--unsafe", "--uploads-per-minute", "100000"],
            cwd=self.folder, env=self.environment)
        line = server.stdout.readline()
        if not line:
            self.skipTest("nothing can be mounted here: " + server.stderr.read())
        self.port = int(line.strip().rstrip("/").rpartition(":")[2])
        statuses = []
        for letter in "abcdefgh":
            body = self.upload(code="#" + letter * 400000)
            status, headers, content = self.ask("POST", "/api/submissions", body, token=token)
            statuses.append(status)
            if status == 503:
                self.assertGreater(int(headers["Retry-After"]), 0)
                self.assertNotIn(b"small", content)  # the organizer's folders are nobody's concern
        stored = statuses.count(201)
        self.assertGreater(stored, 0)
        self.assertEqual(statuses, [201] * stored + [503] * (len(statuses) - stored))
        self.assertIn(503, statuses)
        submissions = "/proc/%d/root%s" % (server.pid, self.path("small/results/submissions"))
        self.assertEqual(sorted(os.listdir(submissions)), [str(i + 1) for i in range(stored)])
        self.assertEqual(self.ask("GET", "/")[0], 200)
        # Page by page there is more room again: whichever file finds none, no name is taken for it.
        small = os.path.join(submissions, "../..")
        filler, size = os.open(os.path.join(small, "filler"), os.O_CREAT | os.O_WRONLY), 0
        with self.assertRaises(OSError):
            while True:
                size += os.write(filler, b"x" * 4096)
        status, refused = 503, 0
        while status == 503:
            size -= 4096
            os.ftruncate(filler, size)
            late = self.upload(run="late %d" % refused, code="1")
            status = self.ask("POST", "/api/submissions", late, token=token)[0]
            self.assertEqual(len(os.listdir(os.path.join(small, "results/runs"))), 1 + (status == 201), refused)
            refused += status == 503
        os.ftruncate(filler, 0)
        os.close(filler)
        self.assertEqual(status, 201)
        self.assertGreater(refused, 2)
        # Where there is room again, what was refused is taken under the same id.
        subprocess.run(["rm", "-r", os.path.join(submissions, "1"), os.path.join(submissions, "../blobs")], check=True)
        self.assertEqual(self.ask("POST", "/api/submissions", body, token=token)[0], 201)
        self.assertIn("No space left", self.stop(server))


if __name__ == "__main__":
    _kjudge.main()
