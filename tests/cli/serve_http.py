# SPDX-License-Identifier: Apache-2.0
"""kjudge serve as an HTTP server: requests that are wrong, large, slow or many, what may be cached, what it
counts, and what it cannot serve."""

import hashlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import urllib.parse

import _kjudge
import _results_directory
import serve


class ServeHttp(serve.ServeCase):
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
        self.assertEqual(self.ask_json("GET", "/api/openapi.json"), serve.OPENAPI)
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

    def test_the_interface_describes_every_field_of_a_shapes_score(self):
        """Some are there only now and then, so that no answer of a test may have them."""
        def properties(schema):
            if isinstance(schema, list):
                return next(filter(None, map(properties, schema)), None)
            if not isinstance(schema, dict):
                return None
            if "below_floor" in schema.get("properties", {}):
                return set(schema["properties"])
            return properties(list(schema.values()))

        with open(os.path.join(_kjudge.ROOT, "tests", "golden", "schemas", "kjudge-result-1.json")) as file:
            self.assertEqual(properties(serve.OPENAPI), properties(json.load(file)))


if __name__ == "__main__":
    _kjudge.main()
