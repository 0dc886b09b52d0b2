# SPDX-License-Identifier: Apache-2.0
"""Pages of the manual are well-formed and say what --help says; their examples run."""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import _kjudge

MAN = os.path.join(_kjudge.SHARE, "man")


def rendered(page):
    """Lines of a page, each paragraph on one."""
    text = subprocess.run(["mandoc", "-Tascii", "-Owidth=1000", page], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return re.sub(".\b", "", text).splitlines()


def section(lines, name):
    start = lines.index(name) + 1
    end = next((i for i in range(start, len(lines)) if re.match("[A-Z]", lines[i])), len(lines))
    return lines[start:end]


def items(lines):
    """{"--shape name": "Only this shape."} of the outermost list in a section."""
    found, tag = {}, None
    for line in lines:
        if match := re.match(r" {5}(\S{1,6})  +(\S.*)", line):  # a short one, with its text
            tag = match.group(1)
            found[tag] = match.group(2)
        elif match := re.match(r" {5}(-.*|\S+( \.\.\.)?)$", line):
            tag = match.group(1)
            found[tag] = ""
        elif tag and line.startswith(" " * 8):
            found[tag] += " " + line.strip()
    return found


class Manual(_kjudge.Case):
    def page(self, name):
        return os.path.join(MAN, "man" + name[-1], name)

    def test_pages_are_well_formed(self):
        pages = glob.glob(os.path.join(MAN, "*", "*"))
        self.assertGreaterEqual(len(pages), 14)
        for page in pages:
            said = subprocess.run(["mandoc", "-Tlint", page], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
            for line in said.splitlines():
                # mandoc looks only into the system's own manual.
                other = re.search(r"STYLE: referenced manual not found: Xr (\S+) (\d)", line)
                if other is None or not os.path.exists(self.page("%s.%s" % other.groups())):
                    self.fail(line)

    def test_every_command_has_a_page_and_every_page_is_named(self):
        named = {line.strip().split("(")[0]
                 for line in section(rendered(self.page("kjudge.1")), "COMMANDS")
                 if line.strip().startswith("kjudge-")}
        self.assertEqual(named, {"kjudge-" + command for command in self.commands()})
        self.assertEqual({os.path.basename(page)[:-2] for page in glob.glob(self.page("*.1"))},
                         named | {"kjudge"})

    def test_options_are_those_of_the_help(self):
        for command in self.commands():
            with self.subTest(command=command):
                lines = rendered(self.page("kjudge-%s.1" % command))
                in_page = items(section(lines, "DESCRIPTION"))
                synopsis = " ".join(section(lines, "SYNOPSIS"))
                options, arguments = self.options_of(command)
                for entry in options + arguments:
                    tag = entry.names.replace(",", ", ")
                    if entry.is_option and entry.value:
                        has_words = any(part.islower() for part in entry.value.split("|"))
                        tag += " " + (entry.value.replace("|", " | ") if has_words
                                      else entry.value).lower()
                    found = [name for name in in_page if name in (tag, tag + " ...")]
                    self.assertEqual(len(found), 1, (tag, list(in_page)))
                    text = " ".join(in_page.pop(found[0]).split())
                    self.assertIn(entry.text, text)
                    for note in entry.notes:
                        said = {"required": "Required."}.get(note, note.replace("default", "Default:"))
                        self.assertIn(said, text)
                    if entry.names != "-h,--help":
                        self.assertIn(entry.names.split(",")[0], synopsis)
                self.assertEqual(in_page, {})

    def contest(self):
        """What the examples of the pages begin with."""
        self.small_challenge()
        self.write("submission.py", _kjudge.RIGHT)
        self.write("handed_in/ada.py", _kjudge.RIGHT)
        self.write("counts.json", json.dumps({"format": "kjudge-metric-counts/1", "metrics": []}))

    def test_examples_run(self):
        self.contest()
        first = ["capture", "judge"]  # the others read what these write
        commands = first + [c for c in self.commands() if c not in first]
        pages = ["kjudge-%s.1" % command for command in commands] + ["kjudge.1"]
        for page in pages:
            text = "\n".join(section(rendered(self.page(page)), "EXAMPLES")).replace("\\\n", " ")
            examples = re.findall(r"^ +\$ kjudge (.*)$", text, re.MULTILINE)
            self.assertTrue(examples, page)
            for example in examples:
                with self.subTest(page=page, example=example):
                    arguments = shlex.split(example)
                    runs_code = arguments[0] in ("judge", "playoff") or "--judge" in arguments
                    if runs_code and self.sandbox_missing():
                        arguments.append("--unsafe")
                    if arguments[0] == "serve":  # until it is told to end
                        server = self.start(*arguments, "--listen", "127.0.0.1:0")
                        server.stdout.readline()
                        server.terminate()
                        _, err = server.communicate(timeout=60)
                        self.assertEqual(server.returncode, 0, err)
                        continue
                    allowed = {"profile": [5], "doctor": [0, 5]}.get(arguments[0], [0])
                    _, err = self.run_kjudge(*arguments, status=None)
                    self.assertIn(self.status, allowed, err)

    def test_fields_of_json_are_named(self):
        self.contest()
        here = ["--challenge", "challenge"]
        for arguments in (["judge", "results", "--from", "handed_in", "--unsafe"] + here,
                          ["capture", "submission.py", "-o", "bundle.kjb"] + here,
                          ["rank", "results"], ["score", "results"], ["doctor"],
                          ["pages", "results", "-o", "pages"]):
            with self.subTest(command=arguments[0]):
                out, _ = self.run_kjudge(*arguments, "--json", status=None)
                document = json.loads(out)
                lines = rendered(self.page("kjudge-%s.1" % arguments[0]))
                text = items(section(lines, "DESCRIPTION"))["--json"]
                text += " ".join(section(lines, "JSON")) if "JSON" in lines else ""
                self.assertIn('"%s"' % document.pop("format"), text)
                if "seconds" in document:
                    document["seconds"] = None  # its names are those of the steps
                self.assert_named(document, text)

    def assert_named(self, value, text):
        for name in value if isinstance(value, dict) else ():
            self.assertRegex(text, r"\b%s\b" % name)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self.assert_named(inner, text)

    def test_a_source_that_names_what_is_not_there(self):
        make_manual = os.path.join(os.path.dirname(_kjudge.SHARE), "cmd", "make_manual")
        for page, old, new, message in (
                ("kjudge-rank.1.in", "@about --json", "@about --jsn", 'the list has no "--jsn"'),
                ("kjudge-evaluation.5.in", "@fields kjudge-result/1 phases", ".It x",
                 "no @fields shows the table at kjudge-result/1.phases"),
                ("kjudge-evaluation.5.in", "/1 shapes.rounds\n", "/1 shapes.round\n",
                 "kjudge-result/1 has no table at shapes.round"),
                ("kjudge-dump.1.in", "@options", "@option", "unknown @option")):
            with self.subTest(message=message):
                man = tempfile.mkdtemp(dir=self.folder)
                shutil.copytree(os.path.join(_kjudge.ROOT, "man"), man, dirs_exist_ok=True)
                with open(os.path.join(man, page)) as file:
                    source = file.read()
                self.assertIn(old, source)
                with open(os.path.join(man, page), "w") as file:
                    file.write(source.replace(old, new, 1))
                done = subprocess.run([make_manual, man, self.path("share")], text=True,
                                      stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, re.escape(page) + r":\d+: " + re.escape(message))
        os.remove(os.path.join(man, "kjudge-rank.1.in"))
        done = subprocess.run([make_manual, man, self.path("share")], text=True, stderr=subprocess.PIPE)
        self.assertIn("kjudge-rank.1.in: is missing", done.stderr)

    def test_an_example_of_a_challenge_is_one(self):
        lines = section(rendered(self.page("kjudge-challenge.5")), "EXAMPLES")
        folder = self.small_challenge()
        self.write("challenge/challenge.json", "\n".join(lines))
        _, err = self.run_kjudge("selftest", "missing.py", "--challenge", folder, status=2)
        self.assertIn("missing.py", err)  # so it is past the challenge


if __name__ == "__main__":
    if shutil.which("mandoc") is None:
        raise SystemExit("mandoc is not installed: apt-get install mandoc")
    _kjudge.main()
