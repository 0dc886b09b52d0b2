# SPDX-License-Identifier: Apache-2.0
"""kjudge serve, with submit.py and kjudge submit as its clients: who may hand in what, what becomes
of it, and that every answer is one that openapi.json describes."""

import base64
import hashlib
import http.client
import io
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import urllib.parse
import uuid

import jsonschema

import _kjudge
import _results_directory

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

    def test_requests_that_are_wrong(self):
        token = self.token("Ada")
        server = self.serve()
        for changed, why in ((dict(run=None), "\"run\" is missing"), (dict(id="1"), "UUID"),
                             (dict(challenge="chess"), "there is softmax"), (dict(run="a/b"), "run: the name"),
                             (dict(challenge="softmax:int8"), "it has float32"),
                             (dict(run="e\u0301"), "NFC"), (dict(file="../x.py"), "without folders"),
                             (dict(file="x.txt"), ".py or .cu"), (dict(extra="1"), "no field \"extra\""),
                             (dict(keep="no"), "true or false"), (dict(code=None), "code or archive"),
                             (dict(code=7), "expected a string"), (dict(contact="a\nb"), "contact")):
            problem = self.ask_json("POST", "/api/submissions", self.upload(**changed), token=token, status=400)
            self.assertIn(why, problem["error"])
        for body in ("", "[]", "{", "{}x", '{"id": "', '{"run": "\xff"}'.encode("latin-1")):
            self.ask_json("POST", "/api/submissions", body, token=token, status=400)
        self.ask_json("POST", "/api/submissions", "{}", token=token, headers={"Content-Type": "text/plain"}, status=415)
        self.assertEqual(self.ask("GET", "/api/submissions")[0], 405)
        self.assertEqual(self.ask("DELETE", "/")[0], 405)
        for path in ("/api/nothing", "/api/submissions/x", "/api/submissions/01", "/api/leaderboard/chess",
                     "/packages/x.tar.zst", "/packages/../submissions"):
            self.assertEqual(self.ask("GET", path, token=token)[0], 404, path)
        for path in ("/nothing.html", "/../store.json", "/%2e%2e/store.json", "/submissions/1/submission.json", "/%00"):
            self.assertEqual(self.ask("GET", path)[0], 404, path)
        self.assertEqual(self.ask("GET", "/%zz")[0], 400)
        self.stop(server)
        self.assertEqual(os.listdir(self.path("results/submissions")), [])

    def test_too_large(self):
        self.challenge = self.small_challenge_of(submission_bytes=4096)
        token = self.token("Ada")
        server = self.serve()
        self.ask_json("POST", "/api/submissions", self.upload(code="#" * 4097), token=token, status=413)
        # Refused by its length alone: nothing of the body is sent.
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(b"POST /api/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                               b"Content-Length: 1000000000\r\n\r\n" % token.encode())
            self.assertIn(b" 413 ", connection.recv(4096).split(b"\r\n")[0])
        # A client that writes all of it before it reads hears why, and does not see a broken connection.
        self.ask_json("POST", "/api/submissions", self.upload(code="#" * (20 << 20)), token=token, status=413)
        self.write("submission.py", "#" * (8 << 20))
        _, err = self.finish(self.client("--run", "r", "--challenge", "softmax", "--server", self.url, token=token), 3)
        self.assertIn("larger than", err)
        self.assertEqual(self.upload_chunked(token, 20000), 413)
        self.stop(server)

    def small_challenge_of(self, **limits):
        path = self.path("challenge", "challenge.json")
        with open(path) as file:
            challenge = json.load(file)
        challenge["limits"] = dict(challenge.get("limits", {}), **limits)
        with open(path, "w") as file:
            json.dump(challenge, file)
        return self.path("challenge")

    def upload_chunked(self, token, size):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text = json.dumps(self.upload(code="#" * size)).encode()
        connection.request("POST", "/api/submissions", iter([text[:100], text[100:]]),
                           {"Authorization": "Bearer " + token}, encode_chunked=True)
        status = connection.getresponse().status
        connection.close()
        return status

    def test_expect_chunks_and_keep_alive(self):
        token = self.token("Ada")
        server = self.serve()
        self.assertEqual(self.upload_chunked(token, 100000), 201)
        text = json.dumps(self.upload()).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            head = (b"POST /api/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                    b"Content-Length: %d\r\n" % (token.encode(), len(text)))
            connection.sendall(head + b"Expect: 100-continue\r\n\r\n")
            self.assertEqual(connection.recv(4096), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(text)
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 201 "))
            # The same connection again, two requests at once.
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET /kjudge.svg HTTP/1.1\r\nHost: x\r\n"
                               b"Connection: close\r\n\r\n")
            answers = b""
            while part := connection.recv(65536):
                answers += part
        self.assertEqual(answers.count(b"HTTP/1.1 200 OK"), 2)
        self.assertTrue(answers.rstrip().endswith(b"</svg>"))
        self.stop(server)

    def test_etags_and_safety(self):
        token = self.token("Ada")
        server = self.serve()
        self.ask_json("POST", "/api/submissions", self.upload(), token=token, status=201)
        for path in ("/", "/kjudge.css", "/api/challenges", "/api/openapi.json", "/api/submissions/1"):
            self.wait_for(lambda: b"my-team" in self.ask("GET", "/")[2], "page")
            status, headers, body = self.ask("GET", path, token=token)
            self.assertEqual(status, 200)
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            etag = headers["ETag"]
            for sent in (etag, "W/" + etag, '"x", ' + etag, "*"):
                status, headers, body = self.ask("GET", path, token=token, headers={"If-None-Match": sent})
                self.assertEqual((status, body, headers["ETag"]), (304, b"", etag), path)
            self.assertEqual(self.ask("GET", path, token=token, headers={"If-None-Match": '"x"'})[0], 200)
            status, headers, body = self.ask("HEAD", path, token=token)
            self.assertEqual((status, body), (200, b""))
            self.assertEqual(int(headers["Content-Length"]), len(self.ask("GET", path, token=token)[2]))
        self.assertEqual(self.ask_json("GET", "/api/openapi.json"), OPENAPI)
        self.stop(server)

    def test_packages(self):
        os.mkdir(self.path("packages"))
        content = os.urandom(300000)
        with open(self.path("packages/softmax-1.tar.zst"), "wb") as file:
            file.write(content)
        self.write("packages/secret.txt", "no")
        os.symlink("/etc/passwd", self.path("packages/link.tar.zst"))
        server = self.serve("--packages", "packages", "--url", "https://contest.example.org/")
        package = self.ask_json("GET", "/api/challenges")["challenges"][0]["package"]
        self.assertEqual(package, {"url": "https://contest.example.org/packages/softmax-1.tar.zst",
                                   "bytes": 300000, "sha256": hashlib.sha256(content).hexdigest()})
        status, headers, body = self.ask("GET", "/packages/softmax-1.tar.zst")
        self.assertEqual((status, body), (200, content))
        self.assertEqual(self.ask("HEAD", "/packages/softmax-1.tar.zst")[1]["Content-Length"], "300000")
        etag = {"If-None-Match": headers["ETag"]}
        self.assertEqual(self.ask("GET", "/packages/softmax-1.tar.zst", headers=etag)[0], 304)
        with open(self.path("packages/softmax-1.tar.zst"), "wb") as file:
            file.write(content + b"!")
        self.assertEqual(self.ask("GET", "/packages/softmax-1.tar.zst", headers=etag)[2], content + b"!")
        for name in ("secret.txt", "link.tar.zst", "..%2fpackages%2fsoftmax-1.tar.zst", ".tar.zst"):
            self.assertEqual(self.ask("GET", "/packages/" + name)[0], 404, name)
        self.stop(server)

    def test_rate_limits(self):
        ada, grace = self.token("Ada"), self.token("Grace")
        server = self.serve("--uploads-per-minute", "1")
        statuses = []
        for i in range(30):
            status, headers, _ = self.ask("POST", "/api/submissions", self.upload(code=str(i)), token=ada)
            statuses.append(status)
        self.assertEqual(statuses, [201] * 20 + [429] * 10)
        self.assertGreater(int(headers["Retry-After"]), 1)
        self.ask_json("POST", "/api/submissions", self.upload("other"), token=grace, status=201)
        self.stop(server)

    def test_slow_uploads_with_one_token_leave_room_for_others(self):
        ada, grace = self.token("Ada"), self.token("Grace")
        server = self.serve("--uploads-per-minute", "1000000")
        for _ in range(64):
            slow = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(slow.close)
            slow.sendall(b"POST /api/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                         b"Content-Length: 60000\r\n\r\n{" % ada.encode())
        answer = slow.recv(65536)  # the last one is among those for which there is no place
        self.assertTrue(answer.startswith(b"HTTP/1.1 429 "), answer)
        self.assertIn(b"Retry-After: 1\r\n", answer)
        self.ask_json("POST", "/api/submissions", self.upload(), token=grace, status=201)
        server.kill()

    def test_a_token_that_is_revoked_while_its_upload_comes_in(self):
        token = self.token("Ada")
        server = self.serve()
        text = json.dumps(self.upload()).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(b"POST /api/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                               b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (token.encode(), len(text)))
            self.assertIn(b" 100 ", connection.recv(4096))
            self.run_kjudge("token", "revoke", "Ada", "--results", "results")
            connection.sendall(text)
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 401 "))
        self.stop(server)
        self.assertEqual(os.listdir(self.path("results/submissions")), [])

    def test_more_connections_than_descriptors_are_usual(self):
        token = self.token("Ada")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertGreater(hard, 300)
        server = self.serve(under=["prlimit", "--nofile=100:"])
        for _ in range(200):
            idle = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(idle.close)
        self.ask_json("POST", "/api/submissions", self.upload(), token=token, status=201)
        self.assertEqual(self.ask("GET", "/index.html")[0], 200)
        self.stop(server)

    def test_a_page_that_is_not_there_looks_like_the_others(self):
        server = self.serve()
        for path in ("/x.html", "/evaluation/99.html", "/a/b/c/", "/%2fa/", "//"):
            status, _, page = self.ask("GET", path)
            self.assertEqual(status, 404)
            for name in re.findall(r'(?:href|src)="([^"#]+)"', page.decode()):
                self.assertEqual(self.ask("GET", urllib.parse.urljoin("http://x" + path, name)[8:])[0], 200, (path, name))
        self.stop(server)

    def test_headers_that_are_too_long_or_no_http(self):
        server = self.serve()
        for request, status in ((b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"431"),
                                (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n", b"431"),
                                (b"nonsense\r\n\r\n", b"400"), (b"\x16\x03\x01\x02\x00\x01", b"400"),
                                (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
                                (b"POST /api/submissions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
                                 b"Content-Length: 3\r\n\r\n0\r\n\r\n", b"400")):
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                answer = b""
                while part := connection.recv(65536):
                    answer += part
            self.assertEqual(answer.split(b" ")[1][:3], status, (request[:60], answer[:200]))
            self.assertIn(b'{"error": ', answer)
        self.assertEqual(self.ask("GET", "/")[0], 200)
        self.stop(server)

    def test_what_is_under_way_is_answered_at_the_end(self):
        token = self.token("Ada")
        server = self.serve()
        text = json.dumps(self.upload()).encode()
        idle = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(b"POST /api/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                               b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (token.encode(), len(text)))
            connection.recv(4096)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(idle.recv(1), b"")  # it is on its way to the end
            connection.sendall(text)
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 201 "))
        server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0)
        idle.close()
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), timeout=60)

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

    def test_metrics_are_counted_where_asked_for(self):
        _results_directory.make(self.path("results"))
        sights = {"opened": ["dram__bytes.sum.per_second", "made_up.sum"], "rested": ["gpu__time_duration.sum"]}
        server = self.serve()
        self.assertEqual(self.ask("POST", "/api/metrics", sights)[0], 405)
        plain = self.ask("GET", "/kjudge.js")[2]
        self.stop(server)
        server = self.serve("--count-metrics", self.path("counts.json"))
        counting = self.ask("GET", "/kjudge.js")[2]
        self.assertTrue(counting.startswith(plain))
        self.assertIn(b"api/metrics", counting)
        for _ in range(2):
            status, headers, _ = self.ask("POST", "/api/metrics", sights)
            self.assertEqual((status, headers["Content-Length"]), (204, None))
        self.assertEqual(self.ask("GET", "/api/metrics")[0], 405)
        self.assertEqual(self.ask("POST", "/api/metrics", {"opened": ["<b>"]})[0], 400)
        self.assertEqual(self.ask("POST", "/api/metrics", {"opened": ["a" * 100] * 1000})[0], 413)
        self.assertEqual(self.ask("POST", "/api/metrics", b"{}", headers={"Content-Type": "text/plain"})[0], 415)
        self.stop(server)
        with open(self.path("counts.json")) as file:
            self.assertEqual(json.load(file), {"format": "kjudge-metric-counts/1", "metrics": [
                {"metric": "dram__bytes.sum.per_second", "opened": 2, "rested": 0},
                {"metric": "gpu__time_duration.sum", "opened": 0, "rested": 2}]})
        out, _ = self.run_kjudge("metrics", "counts.json")
        self.assertEqual([line.split() for line in out.splitlines()],
                         [["metric", "opened", "rested"], ["dram__bytes.sum.per_second", "2", "0"],
                          ["gpu__time_duration.sum", "0", "2"]])
        out, _ = self.run_kjudge("metrics", "counts.json", "--json")
        with open(self.path("counts.json")) as file:
            self.assertEqual(out, file.read())

    def test_slow_counts_keep_nobody_from_handing_in(self):
        token = self.token("Ada")
        server = self.serve("--count-metrics", self.path("counts.json"))
        for _ in range(70):
            slow = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(slow.close)
            slow.sendall(b"POST /api/metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{")
        self.ask_json("POST", "/api/submissions", self.upload(), token=token, status=201)
        self.stop(server)

    def test_what_cannot_be_served(self):
        for arguments, status, why in (
                (["--listen", "nowhere"], 2, "ADDRESS:PORT"), (["--listen", "127.0.0.1:x"], 2, "not a port"),
                (["--listen", "::1:80"], 2, "brackets"), (["--challenge", self.challenge], 2, "two named softmax"),
                (["--url", "contest.example.org"], 2, "--url contest.example.org: expected an http"),
                (["--url", "https://"], 2, "names no host"), (["--url", "https://x/?a=b"], 2, "without ? and #"), (["--count-metrics", "no/such/file"], 6, "no/such/file"),
                (["--access-log", "no/such/log"], 6, "no/such/log")):
            _, err = self.run_kjudge("serve", "results", "--challenge", self.challenge, "--unsafe", *arguments,
                                     status=status)
            self.assertIn(why, err)
        self.serve()
        _, err = self.run_kjudge("serve", "results", "--challenge", self.challenge, "--unsafe", "--listen",
                                 "127.0.0.1:%d" % self.port, status=6)
        self.assertIn("in use", err)
        missing = self.sandbox_missing()
        if missing:
            _, err = self.run_kjudge("serve", "results", "--challenge", self.challenge, "--listen", "127.0.0.1:0",
                                     status=5)
            self.assertIn(missing.split(";")[0], err)


if __name__ == "__main__":
    _kjudge.main()
