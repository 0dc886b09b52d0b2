# SPDX-License-Identifier: Apache-2.0
"""What a submission's code finds in the sandbox: nothing of the judge, no network, no way out; and an
honest submission does not notice it."""

import json
import os
import shutil
import socket
import subprocess
import time

import _kjudge

# Tried by build.sh, at import and in prepare(). What is told: "done", or the error.
PROBE = r"""
import ctypes, errno, fcntl, json, os, socket, sys, termios

SECRETS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "secrets.json")))
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    def attempt():
        buffer = ctypes.create_string_buffer(4096)
        numbers = [ctypes.cast(buffer, ctypes.c_void_p) if a is None else ctypes.c_long(a)
                   for a in arguments]
        if libc.syscall(ctypes.c_long(number), *numbers) < 0:
            raise OSError(ctypes.get_errno(), "")
    return attempt


def clone_with_namespace():
    pid = libc.syscall(ctypes.c_long(56), ctypes.c_long(0x10000000 | 17), *[ctypes.c_long(0)] * 4)
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "")
    os.waitpid(pid, 0)


def connect(family, address):
    def attempt():
        with socket.socket(family) as connection:
            connection.settimeout(3)
            connection.connect(address)
    return attempt


def read(path):
    return lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)


def write(path):
    def attempt():
        open(path, "w").close()
        os.unlink(path)
    return attempt


def environment():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                if SECRETS["word"].encode() in file.read():
                    return
        except OSError:
            pass
    raise OSError(errno.ENOENT, "")


def processes():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            words = file.read().split(b"\0")
        if len(words) > 1 and words[0].endswith(b"kjudge"):
            return
    raise OSError(errno.ESRCH, "")


def type_into_terminal():
    terminal, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSTI, b"x")


def large_file():
    with open("large", "w") as file:
        try:
            file.truncate(1 << 42)
        finally:
            os.unlink("large")


def large_folder(path):
    def attempt():
        room = os.statvfs(path)
        if room.f_blocks * room.f_frsize <= 8 << 30:
            raise OSError(errno.ENOSPC, "")
    return attempt


ATTEMPTS = {
    "connect to an address": connect(socket.AF_INET, ("192.0.2.1", 80)),
    "connect to the machine": connect(socket.AF_INET, ("127.0.0.1", SECRETS["port"])),
    "connect to an abstract socket": connect(socket.AF_UNIX, "\0" + SECRETS["word"]),
    "AF_VSOCK": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    "AF_ALG": lambda: socket.socket(38, socket.SOCK_SEQPACKET).close(),
    "AF_NETLINK": lambda: socket.socket(16, socket.SOCK_RAW).close(),
    "read /etc/shadow": read("/etc/shadow"),
    "read in the home": read(SECRETS["home"]),
    "read the results": read(SECRETS["results"]),
    "read the cache": read(SECRETS["cache"]),
    "read a file": read(SECRETS["file"]),
    "read an environment": environment,
    "see a judge": processes,
    "write /usr": write("/usr/kjudge-was-here"),
    "write /etc": write("/etc/kjudge-was-here"),
    "write /": write("/kjudge-was-here"),
    "write /dev": write("/dev/kjudge-was-here"),
    "write kjudge's files": write(os.environ["KJUDGE_LIBRARY_DIR"] + "/kjudge-was-here"),
    "ptrace": call(101, 0x4206, os.getppid(), 0, 0),
    "process_vm_readv": call(310, os.getpid(), 0, 0, 0, 0, 0),
    "keyctl": call(250, 0, -3, 0, 0, 0),
    "add_key": call(248, None, None, 0, 0, -3),
    "io_uring_setup": call(425, 1, None),
    "userfaultfd": call(323, 1),
    "bpf": call(321, 0, None, 128),
    "perf_event_open": call(298, None, 0, -1, -1, 0),
    "unshare": call(272, 0x10000000),
    "clone with a namespace": clone_with_namespace,
    "mount": call(165, 0, 0, 0, 0, 0),
    "TIOCSTI": type_into_terminal,
    "set-uid": lambda: os.setuid(0 if os.getuid() else 1),
    "a file of 4 TiB": large_file,
    "much in /tmp": large_folder("/tmp"),
    "much in /dev/shm": large_folder("/dev/shm"),
}


def run(where):
    told = {}
    for path in (SECRETS["file"] + ".new", "../kjudge-was-here"):
        try:
            open(path, "w").close()  # may well work, in a private /tmp
        except OSError:
            pass
    for name, attempt in ATTEMPTS.items():
        if where == "control" and name.startswith(("set-uid", "mount", "write /")):
            continue  # as root they work
        try:
            attempt()
            told[name] = "done"
        except OSError as error:
            told[name] = errno.errorcode.get(error.errno, str(error))
    print("PROBE", where, json.dumps(told), flush=True)


if __name__ == "__main__":
    run(sys.argv[1])
"""

# Of what also fails without a sandbox, on some machines or always as root or not.
EXPECTED = {"AF_VSOCK": "EAFNOSUPPORT", "AF_ALG": "EAFNOSUPPORT", "AF_NETLINK": "EAFNOSUPPORT",
            "ptrace": "EPERM", "process_vm_readv": "EPERM", "keyctl": "EPERM", "add_key": "EPERM",
            "io_uring_setup": "EPERM", "userfaultfd": "EPERM", "bpf": "EPERM",
            "perf_event_open": "EPERM", "unshare": "EPERM", "clone with a namespace": "EPERM",
            "mount": "EPERM", "TIOCSTI": "EPERM", "a file of 4 TiB": "EFBIG",
            "connect to the machine": "ECONNREFUSED", "write /usr": "EROFS", "write /dev": "EROFS",
            "write /": "EROFS", "much in /tmp": "ENOSPC", "much in /dev/shm": "ENOSPC"}

DAEMON = """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "%s"])
    os._exit(0)
"""

FORKS = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  int children = 0;
  for (; children < 20000; ++children) {
    const pid_t child = fork();
    if (child == 0) for (;;) pause();
    if (child < 0) break;
  }
  printf("FORKS %d %s\n", children, strerror(errno));
}
"""

FILLS = """
import os, time
for number in range(6):
    with open("part%d" % number, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 30)
time.sleep(20)
"""

DEEP = """
import os, time
for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
with open("hidden", "wb") as file:
    file.write(b"x")
time.sleep(5)
"""


class Sandbox(_kjudge.Case):
    def setUp(self):
        super().setUp()
        if why := self.sandbox_missing():
            self.skipTest("not tried, " + why)
        self.challenge = self.small_challenge()

    def capture(self, submission, *arguments, status=0, **environment):
        """capture --json as a dict."""
        out, _ = self.run_kjudge("capture", submission, "--challenge", self.challenge, "-o",
                                 "made.kjb", "--json", *arguments, status=status, **environment)
        return json.loads(out)

    def probe(self, folder):
        """Writes the probing submission; listens where it will try to connect."""
        word = "secret-%d-%d" % (os.getpid(), time.monotonic_ns())
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        self.addCleanup(listening.close)
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + word)
        abstract.listen()
        self.addCleanup(abstract.close)
        os.makedirs(self.path("results"), exist_ok=True)
        os.makedirs(self.environment["XDG_CACHE_HOME"], exist_ok=True)
        home = os.path.expanduser("~")
        files = [item.path for item in os.scandir(home) if item.is_file()] or [home + "/.bashrc"]
        secrets = {"word": word, "port": listening.getsockname()[1], "home": files[0],
                   "results": self.path("results"), "cache": self.environment["XDG_CACHE_HOME"],
                   "file": self.write("secret", word)}
        self.write(folder + "/probe.py", PROBE)
        self.write(folder + "/secrets.json", json.dumps(secrets))
        self.write(folder + "/build.sh", "python3 probe.py build\n")
        self.write(folder + "/submission.py", "import probe\nprobe.run('import')\n" + _kjudge.RIGHT +
                   "\n\nright = prepare\n\n\ndef prepare(ctx):\n    probe.run('prepare')\n"
                   "    return right(ctx)\n")
        return word

    def written(self):
        """What the probe has written, as the host sees it."""
        return sorted(os.path.join(folder, name) for folder, _, files in os.walk(self.folder)
                      for name in files if name in ("kjudge-was-here", "secret.new"))

    def check_probe(self, log):
        told = {}
        for line in log.splitlines():
            if line.startswith("PROBE "):
                where, text = line.split(" ", 2)[1:]
                told[where] = json.loads(text)
        self.assertEqual(sorted(told), ["build", "import", "prepare"], log)
        self.assertEqual(self.written(), [])
        for where, attempts in told.items():
            self.assertEqual([n for n, result in attempts.items() if result == "done"], [], where)
            for name, error in EXPECTED.items():
                self.assertEqual(attempts[name], error, (where, name))

    def test_nothing_of_the_judge(self):
        word = self.probe("from/probe")
        out, _ = self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge,
                                 "--json", KERNELS_TOKEN=word, KJUDGE_RESULTS=word)
        self.assertEqual(json.loads(out)["judged"][0]["verdict"], "accepted", out)
        with open(self.path("results/submissions/1/evaluations/1/log.txt")) as file:
            self.check_probe(file.read())
        self.assert_nothing_left()

    def test_the_challenge_is_hidden_where_the_system_shows_its_folder(self):
        shown = self.path("shown")  # as /opt is, by the name of a variable
        os.mkdir(shown)
        challenge = os.path.join(shown, "softmax")
        shutil.move(self.challenge, challenge)
        with open(os.path.join(challenge, "challenge.json")) as file:
            described = json.load(file)
        described["hidden"] = ["secret.py"]
        self.write("shown/softmax/challenge.json", json.dumps(described))
        self.write("shown/softmax/secret.py", "the best of solutions")
        self.write("shown/library/there", "")
        self.write("from/reads.py", "import os\nprint('LIST', os.listdir(%r), os.listdir(%r))\n" %
                   (challenge, shown + "/library") + _kjudge.RIGHT)
        more = {"CUDA_HOME": shown}
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", challenge, **more)
        with open(self.path("results/submissions/1/evaluations/1/log.txt")) as file:
            self.assertIn("LIST [] ['there']", file.read())
        for arguments in (("rejudge", "results", "--submission", "1", "--reason", "x"),
                          ("rejudge", "results", "--set", "1", "--judge", "--from-files", "--challenge", challenge)):
            self.run_kjudge(*arguments, **more)
        results = [os.path.join(top, "log.txt") for top, _, files in os.walk(self.path("results/rejudgements"))
                   if "log.txt" in files]
        self.assertEqual(len(results), 1)
        with open(results[0]) as file:
            self.assertIn("LIST [] ['there']", file.read())
        # What Python needs stays, also below it.
        packages = os.path.join(challenge, "packages")
        self.write("shown/softmax/packages/lent.py", "")
        self.write("lent.py", "import lent\n" + _kjudge.RIGHT)
        self.challenge = challenge
        result = self.capture("lent.py", "--sandbox", PYTHONPATH=packages, **more)
        self.assertEqual(result["verdict"], "accepted", result)

    def test_probe_does_something(self):
        """Without the sandbox much of it succeeds: the probe is not what fails."""
        word = self.probe("probe")
        done = subprocess.run(["python3", "probe.py", "control"], cwd=self.path("probe"), text=True,
                              stdout=subprocess.PIPE, check=True, env=dict(
                                  self.environment, KJUDGE_LIBRARY_DIR=self.path("tmp"), TOKEN=word))
        told = json.loads(done.stdout.split(" ", 2)[2])
        for name in ("connect to the machine", "connect to an abstract socket", "read the results",
                     "read the cache", "read a file", "read an environment", "write kjudge's files"):
            self.assertEqual(told[name], "done", name)
        self.assertEqual(self.written(), [self.path("kjudge-was-here"), self.path("secret.new")])
        print("fails here without a sandbox too: %s" %
              ", ".join("%s (%s)" % (n, r) for n, r in told.items() if r != "done" and n in EXPECTED))

    def test_unprivileged(self):
        if os.getuid() != 0:
            self.skipTest("not root: the other tests are this one")
        self.probe("probe")
        user = 64999
        environment = dict(self.environment, PATH="/usr/local/bin:/usr/bin:/bin",
                           XDG_CACHE_HOME=self.path("cache"))
        os.makedirs(self.path("cache"), exist_ok=True)
        for folder, folders, files in os.walk(self.folder):
            for name in ["."] + folders + files:
                os.lchown(os.path.join(folder, name), user, user)
        as_user = ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"]
        reached = subprocess.run(as_user + [_kjudge.BINARY, "--version"], env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if reached.returncode != 0:
            self.skipTest("not tried, another user cannot start kjudge: " + reached.stdout)
        done = subprocess.run(as_user + [_kjudge.BINARY, "capture", "probe", "--challenge",
                                         self.challenge, "-o", "made.kjb", "--json", "--sandbox"],
                              cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_probe(json.loads(done.stdout)["log"])

    def test_daemon_ends_with_the_capture(self):
        seconds = "%d.%d" % (100000 + os.getpid(), time.monotonic_ns() % 1000)
        daemon = self.write("daemon/submission.py", DAEMON % seconds + _kjudge.RIGHT)
        self.write("daemon/build.sh", "setsid sleep %s </dev/null >/dev/null 2>&1 &\n" % seconds)
        self.capture(os.path.dirname(daemon), "--sandbox")
        for pid in filter(str.isdigit, os.listdir("/proc")):  # now, without waiting for any end
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    self.assertNotIn(seconds.encode(), file.read())
            except OSError:
                continue
        self.assert_nothing_left()

    def test_killed_judge_leaves_no_process(self):
        seconds = "%d.%d" % (100000 + os.getpid(), time.monotonic_ns() % 1000)

        def sleeping():
            found = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open("/proc/%s/cmdline" % pid, "rb") as file:
                        if seconds.encode() in file.read():
                            found.append(pid)
                except OSError:
                    continue
            return found

        slow = self.write("slow.py", DAEMON % seconds + "import time\ntime.sleep(1000)\n")
        judge = self.start("capture", slow, "--challenge", self.challenge, "-o", "made.kjb",
                           "--sandbox")
        self.wait_for(sleeping, "process of the submission")
        judge.kill()
        judge.communicate()
        self.wait_for(lambda: not sleeping(), "end of the submission's processes", seconds=10)

    def test_fork_bomb(self):
        self.write("bomb/bomb.c", FORKS)
        self.write("bomb/build.sh", "cc bomb.c -o bomb && exec ./bomb\n")
        self.write("bomb/submission.py", _kjudge.RIGHT)
        result = self.capture("bomb", "--sandbox")
        self.assertRegex(result["log"], r"FORKS [1-4]\d{3} Resource temporarily unavailable")
        self.assertEqual(self.processes(), [])

    def test_result_tells_of_it(self):
        self.write("from/right.py", _kjudge.RIGHT)
        self.run_kjudge("judge", "results", "--from", "from", "--challenge", self.challenge)
        out, _ = self.run_kjudge("show", "1", "--results", "results", "--json")
        self.assertIn("bubblewrap ", json.loads(out)["sandbox"])
        out, _ = self.run_kjudge("show", "1", "--results", "results")
        self.assertRegex(out, r"(?m)^sandbox +bubblewrap ")

    def test_full_disk(self):
        if shutil.disk_usage(self.folder).free < 10 << 30:
            self.skipTest("not tried, less than 10 GiB free in " + self.folder)
        shutil.rmtree(self.challenge)
        self.small_challenge(limits={"bundle_bytes": 256 << 20})
        filling = self.write("fills.py", FILLS + _kjudge.RIGHT)
        result = self.capture(filling, "--sandbox", status=1)
        self.assertEqual(result["verdict"], "refused", result["log"])
        self.assertIn("wrote more than", result["message"])
        self.assert_nothing_left()

    def test_no_folder_is_too_deep_to_be_counted(self):
        deep = self.write("deep.py", DEEP + _kjudge.RIGHT)
        result = self.capture(deep, "--sandbox", status=1)
        self.assertEqual(result["verdict"], "refused", result["log"])
        self.assertIn("files that cannot be looked at", result["message"])
        self.assert_nothing_left()

    def test_examples_have_the_same_verdicts(self):
        examples = os.path.join(_kjudge.ROOT, "examples", "softmax")
        for name in sorted(os.listdir(examples)):
            if name.startswith(("_", ".", "never_ends")):  # those take their whole time limit
                continue
            with self.subTest(name):
                path = os.path.join(examples, name)
                plain = self.capture(path, status=None)
                inside = self.capture(path, "--sandbox", status=None)
                same = ["verdict", "sha256"]
                if plain["verdict"] != "build_error":  # its message names temporary files
                    same.append("message")
                for field in same:
                    self.assertEqual(inside[field], plain[field], inside["log"])
                self.assertEqual(list(inside["seconds"]), list(plain["seconds"]))

    def test_time_limit(self):
        shutil.rmtree(self.challenge)
        self.small_challenge(limits={"build_s": 1})
        slow = self.write("slow/submission.py", _kjudge.RIGHT)
        self.write("slow/build.sh", "sleep 100\n")
        result = self.capture(os.path.dirname(slow), "--sandbox", status=1)
        self.assertEqual(result["verdict"], "timeout", result)
        self.assert_nothing_left()

    def test_a_stopped_process_is_held_to_its_limit(self):
        shutil.rmtree(self.challenge)
        self.small_challenge(limits={"prepare_s": 2})
        stops = self.write("stops.py", _kjudge.RIGHT.replace(
            "def prepare(ctx):\n", "def prepare(ctx):\n    import os; os.kill(os.getpid(), 19)\n"))
        result = self.capture(stops, "--sandbox", status=1)
        self.assertEqual(result["verdict"], "timeout", result)
        self.assertIn("prepare did not end within the limit of 2 s", result["message"])
        self.assertIn("prepare", result["seconds"])
        self.assert_nothing_left()


class NoSandbox(_kjudge.Case):
    """Where it cannot be had, judge says why and does nothing."""

    def refused(self, **environment):
        self.write("from/right.py", _kjudge.RIGHT)
        _, err = self.run_kjudge("judge", "results", "--from", "from", "--challenge",
                                 self.small_challenge(), status=5, **environment)
        self.assertIn("no sandbox here", err)
        self.assertIn("--unsafe", err)
        self.assertFalse(os.path.exists(self.path("results")))
        return err

    def test_no_bubblewrap(self):
        os.mkdir(self.path("empty"))
        self.assertIn("apt-get install bubblewrap", self.refused(PATH=self.path("empty")))

    def test_bubblewrap_that_fails(self):
        os.mkdir(self.path("bin"))
        os.symlink("/bin/false", self.path("bin/bwrap"))
        err = self.refused(PATH=self.path("bin") + ":" + os.environ["PATH"])
        self.assertIn("unprivileged_userns_clone", err)


if __name__ == "__main__":
    _kjudge.main()
