# SPDX-License-Identifier: Apache-2.0
"""kjudge submit and kjudge status do what submit.py does, held to submit.py's own tests; and hand in
to a results directory without a server, and to one with TLS."""

import io
import json
import os
import shutil
import ssl
import subprocess
import tarfile
import unittest

import _kjudge
import submit


class SubmitCommand(submit.Submit):
    A_LINK = "replace the link"
    GOES_ON = "kjudge status 42 --wait"
    BAD_PATIENCE = "--patience"

    def command(self, *arguments, server=None, token=submit.TOKEN, **environment):
        arguments = list(arguments)
        if "--status" in arguments:
            at = arguments.index("--status")
            arguments = ["status", arguments[at + 1], *arguments[:at], *arguments[at + 2:]]
        else:
            arguments.insert(0, "submit")
        if server:
            arguments += ["--server", server]
        self.assertNotIn(submit.TOKEN, " ".join(arguments))
        return self.start(*arguments, KERNELS_TOKEN=token, **environment)

    def test_folder_becomes_an_archive(self):
        contest = self.contest(submit.DONE)
        self.write("mine/submission.py", _kjudge.RIGHT)
        self.write("mine/sub/build.sh", "2")
        os.chmod(self.path("mine/sub/build.sh"), 0o755)
        for name in ("mine/.git/config", "mine/__pycache__/x.pyc", "mine/.secret"):
            self.write(name, "no")
        for _ in range(2):
            self.submit("mine", "--run", "r", "--challenge", "softmax", server=contest.url)
        sent = [request[3] for request in contest.requests]
        self.assertEqual(sent[0]["archive"], sent[1]["archive"])
        self.assertEqual(sent[0]["file"], "submission.tar.zst")
        content = subprocess.run(["zstd", "-dc"], input=submit.base64.b64decode(sent[0]["archive"]),
                                 stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            self.assertEqual([(e.name, e.mode, e.mtime) for e in archive],
                             [("sub/build.sh", 0o755, 0), ("submission.py", 0o644, 0)])

    def test_evaluations_that_lack_something(self):
        contest = self.contest(submit.DONE)
        contest.first = [(200, {}, json.dumps(submit.Contest.submission(
            state="done", evaluations=[{"verdict": "accepted"}])).encode())]
        _, err = self.submit("--status", "42", server=contest.url, status=6)
        self.assertIn("not the answer of a kjudge server", err)

    def test_usage(self):
        contest = self.contest(submit.DONE)
        self.write("submission.py", "1")
        for arguments, why in ((["--challenge", "c"], "--run"), (["--run", "r"], "which challenge?"),
                               (["--status", "x"], "x"), (["--frobnicate"], "--run is required"),
                               (["--run", "r", "--results", "results"], "--server excludes --results")):
            _, err = self.submit(*arguments, server=contest.url, status=2)
            self.assertIn(why, err)
        for server, why in ((None, "say --server URL"), ("ftp://x", "expected an http or https address")):
            _, err = self.submit("--status", "1", server=server, status=2)
            self.assertIn(why, err)
        self.assertEqual(contest.requests, [])

    def test_deeply_nested_answers(self):
        contest = self.contest(submit.DONE)
        nested = b"[" * 100_000 + b"]" * 100_000
        contest.first = [(200, {}, nested)]
        _, err = self.submit("--status", "42", server=contest.url, status=6)
        self.assertIn("not the answer of a kjudge server", err)
        contest.first = [(404, {}, nested)]
        _, err = self.submit("--status", "42", server=contest.url, status=2)
        self.assertIn("no reason given (status 404)", err)
        contest.first = [(503, {}, nested)]  # asked again like any other
        self.submit("--status", "42", server=contest.url)

    def test_servers_that_are_no_address(self):
        for server, why in (("http://", "names no host"), ("http://:80", "names no host"),
                            ("http://127.0.0.1:abc", "not a port"), ("http://127.0.0.1:99999", "not a port"),
                            ("http://[::1", "no IPv6 address"), ("http://h/../x", "not a path"),
                            ("http://u:p@h/", "no user and password"), ("http://h/?x", "without ? and #"),
                            ("http://h/a b", "no spaces"), ("http://h/\u00e9", "only ASCII")):
            _, err = self.submit("--status", "1", server=server, status=2)
            self.assertIn(why, err)
            self.assertNotIn("trying again", err)

    def test_a_file_that_is_not_there(self):
        contest = self.contest(submit.DONE)
        for arguments, name in ((["nosuch.py"], "nosuch.py"), ([], "submission.py")):
            _, err = self.submit(*arguments, "--run", "r", "--challenge", "c", server=contest.url, status=2)
            self.assertIn("kjudge: usage: %s: no such file or folder\n" % name, err)
        self.assertEqual(contest.requests, [])

    def test_old_python_reads_it(self):
        self.skipTest("of submit.py alone")

    def test_a_large_file_on_a_slow_line(self):
        self.skipTest("of submit.py alone")

    def test_code_that_is_not_utf8(self):
        contest = self.contest(submit.DONE)
        with open(self.path("submission.py"), "wb") as file:
            file.write(b"# \xff\n")
        _, err = self.submit("--run", "r", "--challenge", "c", server=contest.url, status=3)
        self.assertIn("submission.py: not UTF-8", err)

    def test_a_queue_on_this_machine(self):
        challenge = self.small_challenge()
        self.write("mine/submission.py", _kjudge.RIGHT)
        os.mkdir(self.path("results"))
        os.mkdir(self.path("results/submissions"))
        arguments = ["mine", "--run", "ada", "--challenge", challenge, "--results", "results"]
        out, _ = self.submit(*arguments, "--no-wait", token="")
        self.assertEqual(out, "results/submissions/1\n")
        _, err = self.submit("--status", "1", "--results", "results", token="", status=75)
        self.assertIn("submission 1: waiting", err)
        waiting = self.command("--status", "1", "--wait", "--results", "results", token="")
        self.assertIn("position 1 in the queue", waiting.stderr.readline())  # before it is judged
        self.run_kjudge("judge", "results", "--challenge", challenge, "--unsafe")
        out, err = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0, err)
        self.assertEqual(out.splitlines()[-1], "rank: 1 of 1")
        out, _ = self.submit("--status", "1", "--results", "results", "--json", token="")
        self.assertEqual(json.loads(out)["evaluations"][0]["verdict"], "accepted")
        _, err = self.submit("--status", "2", "--results", "results", token="", status=2)
        self.assertIn("there is no submission 2", err)
        # With no --challenge, the one beside the submission.
        shutil.copy(self.path("mine/submission.py"), self.path("challenge", "again.py"))
        out, _ = self.submit(os.path.join(challenge, "again.py"), "--run", "ada", "--results", "results",
                             "--no-wait", token="")
        self.assertEqual(out, "results/submissions/2\n")

    def certificate(self, name):
        key, certificate = self.path(name + ".key"), self.path(name + ".crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=" + name,
                        "-addext", "subjectAltName=DNS:" + name], check=True, stderr=subprocess.DEVNULL)
        return key, certificate

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_tls_with_the_certificate_checked(self):
        for name, trusted, status in (("localhost", True, 0), ("localhost", False, 6), ("example.org", True, 6)):
            contest = self.contest(submit.DONE)
            key, certificate = self.certificate(name)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            contest.server.socket = context.wrap_socket(contest.server.socket, server_side=True)
            process = self.command("--status", "42", server="https://localhost:%d" % contest.port,
                                   SSL_CERT_FILE=certificate if trusted else self.path("none"))
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, status, err)
            self.assertEqual(len(contest.requests), 1 if status == 0 else 0)  # none gets the token
            if status != 0:
                self.assertIn("its certificate is not to be trusted", err)


del submit.Submit  # its own tests are run from its own file
if __name__ == "__main__":
    _kjudge.main()
