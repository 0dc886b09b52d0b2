# SPDX-License-Identifier: Apache-2.0
"""Runs kjudge-tutorial(7) in its two terminals: every command is there, and prints what the page says it does,
but for numbers. Its challenge is a small one here."""

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request

import _kjudge

PAGE = os.path.join(_kjudge.ROOT, "man", "kjudge-tutorial.7.in")


def commands():
    """[[terminal, command, what it prints]] of the page."""
    with open(PAGE) as file:
        source = file.read()
    found = []
    for block in re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", source, re.MULTILINE | re.DOTALL):
        continued = False
        for line in block.replace("\\e", "\\").replace("\\&", "").splitlines():
            prompt = re.match(r"(organizer|ada)\$ (.*)", line)
            if prompt:
                found.append([*prompt.groups(), ""])
            elif continued:
                found[-1][1] += "\n" + line
            else:
                found[-1][2] += line + "\n"
            continued = line.endswith("\\") and (continued or prompt is not None)
    return found


def skeleton(text):
    """What must be the same: no numbers, no rows that there are more of with more shapes, no line ends."""
    text = re.sub(r"(?m)^kjudge: submission \d+: judging\n", "", text)  # as the server happens to have seen it
    text = re.sub(r", position \d+ in the queue", "", text)
    text = re.sub(r"\b(test-)?\d+x\d+\b", "SHAPE", text)
    text = re.sub(r"kjt_[0-9a-f]{64}", "TOKEN", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    text = re.sub(r"\b(of )?\d+ files\b", "N files", text)
    text = re.sub(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|\bnan\b|\binf\b)", "N", text)
    text = re.sub(r"\b[mun]?s\b", "s", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    more = ("SHAPE", "kjudge: N ada: judged again")  # as many as it takes
    kept = [line for i, line in enumerate(lines) if not (line.startswith(more) and line in lines[:i])]
    # What is wrong with which inputs is theirs.
    return re.sub(r"first at .*? regime \w+", "REPORT", " ".join(" ".join(kept).split()))


class Terminal:
    def __init__(self, folder, environment):
        os.mkdir(folder)
        self.shell = subprocess.Popen(["bash", "--norc"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        self.shell.stdin.write(command + "\necho @@end\n")
        self.shell.stdin.flush()
        said = ""
        while not said.endswith("@@end\n"):
            line = self.shell.stdout.readline()
            if not line:
                raise AssertionError("the shell ended in %s: %s" % (command, said))
            said += line
        return said[:-len("@@end\n")]

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()


class Tutorial(_kjudge.Case):
    maxDiff = None

    def test_the_page_says_what_happens(self):
        for program in ("bash", "curl", "tar", "zstd", "sed"):
            if shutil.which(program) is None:
                self.skipTest(program + " is not installed")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        unsafe = " --unsafe" if self.sandbox_missing() else ""
        environment = dict(self.environment, KJUDGE_LISTEN="127.0.0.1:" + port, PATH="%s:%s:%s" % (
            os.path.dirname(_kjudge.BINARY), os.path.dirname(sys.executable), os.environ["PATH"]))
        terminals = {name: Terminal(self.path(name), environment) for name in ("organizer", "ada")}
        found = commands()
        self.assertGreater(len(found), 20)
        token = None
        try:
            for terminal, command, expected in found:
                if command.startswith("cp -r "):
                    small = {"dims": {"rows": 64, "cols": 48}}  # and two dtypes, as in the large one
                    shapes = [dict(small, arch="x86_64", dtype="float32"), dict(small, arch="sm_*", dtype="bfloat16")]
                    shutil.copytree(self.small_challenge(shapes=shapes), self.path("organizer/softmax"))
                    continue
                command = command.replace(":8080", ":" + port)
                command = re.sub(r"kjt_[0-9a-f]{64}", lambda _: token, command)
                command = re.sub(r"^kjudge (serve|judge) (?!.*--set)", r"kjudge \1%s " % unsafe, command)
                said = terminals[terminal].run(command)
                token = (re.findall(r"kjt_[0-9a-f]{64}", said) or [token])[0]
                self.assertEqual(skeleton(said.replace(":" + port, ":8080")), skeleton(expected), command + "\n" + said)
                if command.startswith("kjudge serve"):
                    self.wait_for(lambda: self.answers(port), "server")
        finally:
            for one in terminals.values():
                one.close()
        self.assert_nothing_left()

    def answers(self, port):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%s/" % port) as answer:
                return answer.status == 200
        except OSError:
            return False


if __name__ == "__main__":
    _kjudge.main()
