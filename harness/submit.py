#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hands in a submission and waits for its verdict.

    export KERNELS_TOKEN=...
    python submit.py submission.py --run my-team

A proxy is used where https_proxy or http_proxy names one. Stopping this program stops nothing; --status NUMBER --wait takes the waiting up again.
"""
# Needs Python 3.9 and its standard library alone. What it says to the server, and hears:
#
#   POST SERVER/api/submissions         Authorization: Bearer TOKEN; a JSON object:
#     id         a UUID that the client makes; the same id again is the same submission, so a request
#                whose answer was lost may be repeated
#     run        name to group submissions under; it belongs to whoever used it first
#     challenge  NAME[:DTYPE[:GPU[:SHAPE]]], or "all": every challenge, whole
#     file       "submission.py", "submission.cu", or an archive's name: .tar, .tar.gz, .tgz,
#                .tar.zst or .zip
#     code       the file's text (of a .py or .cu), or
#     archive    its bytes in base64
#     contact    optional: how to reach the author
#     keep       optional: false asks to delete the files once judged
#     publish    optional: false asks to show the code to nobody, whatever the challenge says
#   answers 201, or 200 for an id that is known, with a submission.
#
#   GET SERVER/api/submissions/NUMBER   Authorization: Bearer TOKEN
#   answers 200 with a submission, a JSON object:
#     number       42
#     id, run, challenge   as handed in
#     url          its page
#     state        "waiting", "judging" or "done"
#     variant      optional: the part of the challenge that was asked for
#     position     while waiting: 1 is next
#     waits_for    while waiting, optional: the GPU that was asked for, where no judge had it yet
#     step         while judging, optional: what is being done
#     poll_s       optional: seconds after which to ask again
#     evaluations  when done: a list of objects with the fields challenge, dtype (optional), variant
#                  (optional: the part that was judged), gpu (optional), verdict, message, shapes
#                  (each with name, verdict, message), log (optional: the end of what the submission
#                  wrote, with tracebacks), score of kjudge-evaluation(5), rank and of, integers: 2
#                  of 17 (absent: not ranked), pending (optional: true where it is judged again
#                  before it is ranked) and invalid (optional: a list of reasons why it does not
#                  count)
#
#   Whatever else it answers has a JSON object {"error": "what is wrong, and what to do"} and a status:
#     401, 403   the token is missing, unknown or not allowed that
#     413, 422   the submission is too large, or its files cannot be read
#     429, 503   too many, or not now: Retry-After says in how many seconds
#     5xx        asked again, as is a server that is not there, for --patience seconds
#     other 4xx  the request is wrong: no such challenge or submission, another's run
import argparse
import base64
import gzip
import http.client
import io
import json
import os
import re
import socket
import ssl
import stat
import sys
import tarfile
import time
import urllib.error
import urllib.request
import uuid

SERVER = ""
CHALLENGE = ""

SOURCES = (".py", ".cu")
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip")
EXIT_NOT_ACCEPTED, EXIT_USAGE, EXIT_MALFORMED, EXIT_AUTHENTICATION = 1, 2, 3, 4
EXIT_JUDGE_ERROR, EXIT_IO, EXIT_TRY_LATER, EXIT_INTERRUPTED = 5, 6, 75, 130
ANSWER_LIMIT = 16 << 20


class Stop(Exception):
    """Ends the program with a message and an exit code."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class TryAgain(Exception):
    """The server cannot answer now."""

    def __init__(self, message, retry_after_s=None):
        super().__init__(message)
        self.retry_after_s = retry_after_s


def printable(text):
    """Text of the server's without what could drive a terminal, and without the token."""
    token = os.environ.get("KERNELS_TOKEN", "").strip()
    text = str(text).replace(token, "***") if token else str(text)
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def hanging(text):
    """Of several lines, which may be a contestant's, only the first begins where a line of ours could."""
    return text.replace("\n", "\n  ")


def say(text):
    print("kjudge: " + hanging(printable(text)), file=sys.stderr, flush=True)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection would take the token to wherever it leads."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


def host_of(address):
    """The host that a server's address names; what could never be asked is refused at once."""
    def refuse(why):
        raise Stop(EXIT_USAGE, "--server%s: %s" % ("" if "@" in address else " " + address, why))

    if "@" in re.split("[/?#]", address.partition("://")[2] or address)[0]:
        refuse("an address has no user and password; the token in KERNELS_TOKEN says who you are")
    if not address.startswith(("https://", "http://")):
        refuse("expected an http or https address")
    if not (address.isascii() and address.isprintable()) or " " in address:
        refuse("an address has no spaces and only ASCII characters")
    if "?" in address or "#" in address:
        refuse("expected an address without ? and #, which paths are added to")
    if len(address) > 200:
        refuse("an address is at most 200 bytes long")
    place, slash, path = address.partition("://")[2].partition("/")
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        if not bracket or not is_ipv6(host):
            refuse("what stands in brackets is no IPv6 address such as [::1]")
    else:
        host = place.partition(":")[0]
        port = place[len(host):]
        if not host:
            refuse("names no host")
        if not re.fullmatch(r"{0}([.]{0})*".format(r"\w(?:[\w-]{0,61}\w)?"), host, re.ASCII):
            refuse('not a host: names of letters, digits, "-" and "_" with "." between them, or an IPv6 '
                   "address in brackets")
    if port and not (re.fullmatch(":[1-9][0-9]{0,4}", port) and int(port[1:]) <= 65535):
        refuse('not a port: a number from 1 to 65535, after one ":"')
    for part in path[:-1 if path.endswith("/") else None].split("/") if path else []:
        if part in (".", "..") or not re.fullmatch(r"([\w.~+-]|%[0-9A-Fa-f]{2})+", part, re.ASCII):
            refuse('not a path: parts of letters, digits, ".", "_", "~", "+", "-" and % with two '
                   'hexadecimal digits, none of them empty, "." or ".."')
    return host


def is_ipv6(text):
    try:
        socket.inet_pton(socket.AF_INET6, text)
        return "." not in text
    except (OSError, ValueError):
        return False


class Server:
    def __init__(self, address, patience_s):
        if not address:
            raise Stop(EXIT_USAGE, "no server is stored in this submit.py; say --server URL")
        host = host_of(address)
        self.address = address[:-1] if address.endswith("/") else address
        if address.startswith("http://") and host not in ("localhost", "127.0.0.1", "::1"):
            say("%s: without https others can read your token on its way" % self.address)
        self.patience_s = patience_s
        self.opener = urllib.request.build_opener(NoRedirect)
        self.token = os.environ.get("KERNELS_TOKEN", "").strip()
        if not self.token:
            raise Stop(EXIT_AUTHENTICATION,
                       "KERNELS_TOKEN is not set; export the token that the organizer gave you")
        if not (self.token.isascii() and self.token.isprintable()):
            raise Stop(EXIT_AUTHENTICATION, "KERNELS_TOKEN holds characters that no token has")

    def ask(self, path, body=None):
        """The submission that the server answers with; asks again while it cannot answer."""
        deadline = time.monotonic() + self.patience_s
        pause_s, told = 0.2, False
        while True:
            try:
                return self.ask_once(path, body)
            except TryAgain as problem:
                wait_s = problem.retry_after_s if problem.retry_after_s is not None else pause_s
                if time.monotonic() + wait_s > deadline:
                    raise Stop(EXIT_TRY_LATER, "%s; try again later" % problem) from None
                if not told:
                    say("%s; trying again for up to %d s" % (problem, self.patience_s))
                told = True
                time.sleep(wait_s)
                pause_s = min(2 * pause_s, 5)

    def ask_once(self, path, body):
        headers = {"Authorization": "Bearer " + self.token, "Accept": "application/json",
                   "Content-Type": "application/json", "User-Agent": "kjudge-submit/1"}
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Length"] = str(len(content))
            # A file goes in pieces that have the timeout each; bytes would have it all together.
            body = io.BytesIO(content)
        request = urllib.request.Request(self.address + path, body, headers)
        try:
            with self.opener.open(request, timeout=30) as answer:
                return read_submission(answer.read(ANSWER_LIMIT), self.address)
        except urllib.error.HTTPError as error:
            self.fail(error)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise Stop(EXIT_IO, "%s: %s" % (self.address, reason)) from None
            raise TryAgain("%s does not answer (%s)" % (self.address, reason)) from None

    def fail(self, error):
        status = error.code
        if 300 <= status < 400:
            place = error.headers.get("Location")
            if not place:
                raise Stop(EXIT_USAGE, "%s sends elsewhere without saying where (status %d); ask the "
                           "organizer for the address to give to --server" % (self.address, status))
            raise Stop(EXIT_USAGE, "%s sends elsewhere, to %s; if you trust it, say --server" %
                       (self.address, place))
        try:
            message = read_json(error.read(ANSWER_LIMIT))["error"]
        except RecursionError:
            if status != 429 and status < 500:
                raise Stop(EXIT_IO, "%s: not the answer of a kjudge server (nested too deeply, "
                           "status %d)" % (self.address, status)) from None
            message = "no reason given"
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            message = "no reason given"
        message = "%s: %s (status %d)" % (self.address, message, status)
        if status in (401, 403):
            raise Stop(EXIT_AUTHENTICATION, message)
        if status in (413, 422):
            raise Stop(EXIT_MALFORMED, message)
        if status == 429 or status >= 500:
            after = error.headers.get("Retry-After", "")
            # A billion seconds are for ever; more digits would be no number of Python's.
            after = int(after[:10]) if after.isascii() and after.isdecimal() else None
            raise TryAgain(message, after if after is None else min(after, 10**9))
        raise Stop(EXIT_USAGE, message)


def read_json(content):
    """Strictly, as `kjudge submit` reads it: UTF-8 without a byte order mark, no name twice, no NaN."""
    def members(pairs):
        read = dict(pairs)
        if len(read) < len(pairs):
            raise ValueError("a name stands twice in the same object")
        return read

    def no_number(text):
        raise ValueError("%s is no number in JSON" % text)

    return json.loads(content.decode(), object_pairs_hook=members, parse_constant=no_number)


def read_submission(answer, address):
    try:
        submission = read_json(answer)
        known = submission["state"] in ("waiting", "judging", "done")
        if not (known and isinstance(submission["number"], int) and
                isinstance(submission["url"], str)):
            raise ValueError("state, number or url is wrong")
        if submission["state"] == "done" and not (isinstance(submission["evaluations"], list) and all(
                isinstance(one, dict) and isinstance(one.get("verdict"), str)
                for one in submission["evaluations"])):
            raise ValueError("evaluations are no list of objects with a verdict")
        return submission
    except RecursionError:
        raise Stop(EXIT_IO, "%s: not the answer of a kjudge server (nested too deeply)" %
                   address) from None
    except (ValueError, KeyError, TypeError) as error:
        raise Stop(EXIT_IO, "%s: not the answer of a kjudge server (%s)" % (address, error)) from None


def archive_of(folder):
    """A tar.gz of a folder, without what kjudge leaves out."""
    entries = ("submission.py", "submission.cu")
    if not any(os.path.isfile(os.path.join(folder, name)) for name in entries):
        for name in entries:
            if os.path.isdir(os.path.join(folder, name)):
                raise Stop(EXIT_USAGE, "%s: %s is a folder; a file of that name is what is called" % (folder, name))
        raise Stop(EXIT_USAGE, "%s: no submission.py or submission.cu at its root; name the file so that has "
                               "prepare and kernel_fn" % folder)

    def refuse(error):
        raise error  # a folder that cannot be read; os.walk would leave it out

    def left_out(name):
        return name.startswith(".") or name in ("__pycache__", "__MACOSX")

    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", filename="", mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for parent, folders, files in os.walk(folder, onerror=refuse):
            for name in sorted(folders + files):
                path = os.path.join(parent, name)
                if os.path.islink(path) and not left_out(name):
                    raise Stop(EXIT_USAGE, "%s: a link; put the file itself in its place" % path)
            folders[:] = sorted(name for name in folders if not left_out(name))
            for name in sorted(files):
                path = os.path.join(parent, name)
                if left_out(name):
                    continue
                if not os.path.isfile(path):
                    raise Stop(EXIT_USAGE, "%s: not a regular file" % path)
                if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
                    raise Stop(EXIT_USAGE, "%s: a setuid or setgid bit; take it away with chmod ug-s" % path)
                entry = tarfile.TarInfo(os.path.relpath(path, folder))
                entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
                with open(path, "rb") as file:
                    content = file.read()
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def files_of(path):
    """The fields of a request that hold the submission."""
    if os.path.isdir(path):
        return {"file": "submission.tar.gz", "archive": base64.b64encode(archive_of(path)).decode()}
    if not os.path.exists(path):
        raise Stop(EXIT_USAGE, "%s: no such file or folder" % path)
    if not path.endswith(SOURCES + ARCHIVES):
        raise Stop(EXIT_USAGE, "%s: not a file that can be handed in; these are folders and files named "
                   "%s (in lower case)" % (path, ", ".join("*" + end for end in SOURCES + ARCHIVES)))
    if not os.path.isfile(path):  # a FIFO would be waited for
        raise Stop(EXIT_MALFORMED, "%s: not a regular file" % path)
    with open(path, "rb") as file:
        content = file.read()
    if path.endswith(ARCHIVES):
        return {"file": os.path.basename(path), "archive": base64.b64encode(content).decode()}
    name = "submission.cu" if path.endswith(".cu") else "submission.py"
    try:
        return {"file": name, "code": content.decode()}
    except UnicodeDecodeError as error:
        raise Stop(EXIT_MALFORMED, "%s: not UTF-8 (%s)" % (path, error)) from None


def default_path():
    alone = not os.path.exists("submission.py") and os.path.exists("submission.cu")
    return "submission.cu" if alone else "submission.py"


def hand_in(server, options):
    if not options.run:
        raise Stop(EXIT_USAGE, "say --run NAME: the name your submissions are grouped under")
    if not options.challenge:
        raise Stop(EXIT_USAGE, "no challenge is stored in this submit.py; say --challenge NAME")
    body = {"id": str(uuid.uuid4()), "run": options.run, "challenge": options.challenge}
    body.update(files_of(options.path or default_path()))
    if options.contact:
        body["contact"] = options.contact
    if options.no_keep:
        body["keep"] = False
    if options.no_publish:
        body["publish"] = False
    return server.ask("/api/submissions", body)


def state_text(submission):
    place = submission.get("position")
    now = submission["state"]
    if now == "waiting" and isinstance(place, int):
        now = "waiting, position %d in the queue" % place
    if submission["state"] == "waiting" and submission.get("waits_for"):
        now += ", for a judge with %s, which none had yet" % submission["waits_for"]
    if now == "judging" and submission.get("step") and sys.stderr.isatty():
        now = "judging: %s" % submission["step"]
    return now


def wait(server, submission):
    told = None
    while submission["state"] != "done":
        now = state_text(submission)
        if now != told:
            say("submission %d: %s" % (submission["number"], now))
            told = now
        pause_s = submission.get("poll_s", 2)
        usable = isinstance(pause_s, (int, float)) and 0 <= pause_s <= 3600
        time.sleep(pause_s if usable else 2)
        submission = server.ask("/api/submissions/%d" % submission["number"])
    return submission


def interval_text(measured):
    interval = measured["interval"]
    return "%.3fx" % measured["speedup"], "[%.3f, %.3f]" % (interval["low"], interval["high"])


def evaluation_lines(evaluation):
    variant = evaluation.get("variant")
    what = ["partial, %s" % variant] if variant else [evaluation["challenge"], evaluation.get("dtype")]
    where = "on " + evaluation["gpu"] if evaluation.get("gpu") else ""
    yield " ".join(filter(None, what + [where])) + ": " + evaluation["verdict"]
    if evaluation.get("message"):
        yield "  " + hanging(evaluation["message"])
    score = evaluation.get("score") or {}
    measured = {shape["name"]: interval_text(shape) for shape in score.get("shapes", [])}
    rows = [("shape", "speedup", "interval", "verdict")]
    for shape in evaluation.get("shapes", []):
        rows.append((shape["name"], *measured.get(shape["name"], ("", "")), shape["verdict"]))
    if len(rows) > 1:
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for row in rows:
            yield "  ".join([row[i].ljust(widths[i]) for i in range(3)] + [row[3]])
    for shape in evaluation.get("shapes", []):
        if shape.get("message"):
            yield "%s: %s" % (shape["name"], hanging(shape["message"]))
    if "speedup" in score:
        yield "score: %s %s" % interval_text(score)
    among = ", among those of %s" % variant if variant else ""
    for reason in evaluation.get("invalid", []):
        yield "does not count: " + reason
    if "rank" in evaluation:
        yield "rank: %d of %d%s" % (evaluation["rank"], evaluation["of"], among)
    elif evaluation.get("pending"):
        yield "rank: pending%s, until it is judged again: it is faster than the first" % among
    elif score.get("why_not") and not evaluation.get("invalid"):
        yield "not ranked: " + score["why_not"]
    log = (evaluation.get("log") or "").rstrip("\n")
    if log and evaluation["verdict"] != "accepted":
        yield "log:"
        for line in log.split("\n"):
            yield "  " + line


def show(submission, address):
    if submission["state"] != "done":
        say("submission %d: %s" % (submission["number"], state_text(submission)))
        return
    try:
        lines = [line for one in submission["evaluations"] for line in evaluation_lines(one)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Stop(EXIT_IO, "%s: an evaluation that cannot be read (%r); the page has it" %
                   (address, error)) from None
    for line in lines:
        print(printable(line))


def status_of(submission):
    if submission["state"] != "done":
        return EXIT_TRY_LATER
    if not submission["evaluations"]:
        say("submission %d: done, but the server gives no verdict; tell the organizer" %
            submission["number"])
        return EXIT_JUDGE_ERROR
    verdicts = {one.get("verdict") for one in submission["evaluations"]}
    if "judge_error" in verdicts:
        return EXIT_JUDGE_ERROR
    return 0 if verdicts == {"accepted"} else EXIT_NOT_ACCEPTED


def seconds(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("%s: expected a number of seconds, 0 or more" % text)
    return value


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="submit.py", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__,
        epilog="Exit: 0 accepted, 1 judged and not accepted, 2 usage, 3 files that cannot be read, 4 "
               "the token,\n5 judge error, 6 input or output, 75 try later (with --status: not yet "
               "judged), 130 interrupted.")
    parser.add_argument("path", nargs="?", help="a Python or CUDA C++ file, or a folder or archive with "
                        "submission.py or submission.cu; default: ./submission.py")
    parser.add_argument("--run", default=os.environ.get("KJUDGE_RUN"),
                        help="name your submissions are grouped under")
    parser.add_argument("--challenge", default=CHALLENGE,
                        help="NAME[:DTYPE[:GPU[:SHAPE]]], or all; default: %(default)s")
    parser.add_argument("--contact", help="how to reach you")
    parser.add_argument("--no-keep", action="store_true", help="ask that the files be deleted once judged")
    parser.add_argument("--no-publish", action="store_true",
                        help="ask that the code be shown to nobody, whatever the challenge says")
    parser.add_argument("--status", type=int, metavar="NUMBER", help="show that submission")
    parser.add_argument("--wait", action=argparse.BooleanOptionalAction, default=None,
                        help="until it is judged; the default but for --status")
    parser.add_argument("--json", action="store_true", help="print the server's last answer")
    parser.add_argument("--server", default=os.environ.get("KJUDGE_SERVER") or SERVER,
                        help="default: %(default)s")
    parser.add_argument("--patience", type=seconds, default=600, metavar="SECONDS",
                        help="how long to ask a server that does not answer; default: %(default)s")
    options = parser.parse_args(arguments)
    if options.wait is None:
        options.wait = options.status is None
    return options


def main(arguments):
    options = parse(arguments)
    server = Server(options.server, options.patience)
    if options.status is not None:
        submission = server.ask("/api/submissions/%d" % options.status)
    else:
        submission = hand_in(server, options)
    if options.json:
        say(submission["url"])
    else:
        print(printable(submission["url"]), flush=True)
    try:
        if options.wait:
            submission = wait(server, submission)
    except KeyboardInterrupt:
        say("stopped waiting; the submission goes on: submit.py --status %d --wait" % submission["number"])
        return EXIT_INTERRUPTED
    if options.json:
        try:
            print(printable(json.dumps(submission, indent=2)))
        except RecursionError:
            raise Stop(EXIT_IO, "%s: not the answer of a kjudge server (nested too deeply)" %
                       server.address) from None
    elif options.wait or options.status is not None:
        show(submission, server.address)
    return status_of(submission) if options.wait or options.status is not None else 0


if __name__ == "__main__":
    if sys.version_info < (3, 9):
        say("this Python is %d.%d, submit.py needs 3.9 or newer" % sys.version_info[:2])
        sys.exit(EXIT_JUDGE_ERROR)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # a log may have what a terminal's encoding has not
    try:
        sys.exit(main(sys.argv[1:]))
    except Stop as stop:
        say(stop)
        sys.exit(stop.status)
    except KeyboardInterrupt:
        say("interrupted; the submission may have been handed in")
        sys.exit(EXIT_INTERRUPTED)
    except OSError as problem:
        say(problem)
        sys.exit(EXIT_IO)
