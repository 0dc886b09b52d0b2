# SPDX-License-Identifier: Apache-2.0
"""Completions know every command, option, word and file; asked in the shells themselves."""

import os
import re
import shutil
import subprocess
import unittest

import _kjudge

BASH = os.path.join(_kjudge.SHARE, "bash-completion", "completions", "kjudge")
ZSH = os.path.join(_kjudge.SHARE, "zsh", "site-functions", "_kjudge")
FISH = os.path.join(_kjudge.SHARE, "fish", "vendor_completions.d", "kjudge.fish")

# Words as bash splits a line before the cursor: "=" is one by itself.
ASK_BASH = """
compopt() { :; }  # only Readline knows it
source "$1"; shift
complete -p kjudge >/dev/null || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_kjudge
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.write("one.json", "")
        self.write("folder/two.json", "")

    def ask_bash(self, *words):
        done = subprocess.run(["bash", "--norc", "-c", ASK_BASH, "bash", BASH, "kjudge", *words],
                              cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return set(done.stdout.split())

    def ask_fish(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]",
                               FISH, "kjudge " + line],
                              cwd=self.folder, text=True, stdout=subprocess.PIPE, check=True,
                              env=dict(self.environment, HOME=self.temporary,
                                       XDG_CONFIG_HOME=self.temporary))
        return {answer.split("\t")[0] for answer in done.stdout.splitlines()}

    def expected(self, command):
        """Names of all options, and the words of those that take words."""
        names, words = set(), {}
        for option in self.options_of(command)[0]:
            names |= set(option.names.split(","))
            if option.is_words:
                words[option.names.split(",")[-1]] = set(option.value.split("|"))
        return names, words

    def test_bash(self):
        commands = set(self.commands())
        self.assertEqual(self.ask_bash(""), commands)
        self.assertEqual(self.ask_bash("sel"), {"selftest"})
        self.assertEqual(self.ask_bash("-"), {"-h", "--help", "--version", "--config"})
        for command in commands:
            names, words = self.expected(command)
            self.assertEqual(self.ask_bash(command, "-"), names)
            for option, of in words.items():
                self.assertEqual(self.ask_bash(command, option, ""), of)
                self.assertEqual(self.ask_bash(command, option, "="), of)
                first = sorted(of)[0]
                self.assertEqual(self.ask_bash(command, option, "=", first[:-1]), {first})
        self.assertEqual(self.ask_bash("score", "o"), {"one.json"})
        self.assertEqual(self.ask_bash("judge", "--from", ""), {"folder", "tmp"})
        self.assertEqual(self.ask_bash("capture", "-o", "one"), {"one.json"})
        self.assertEqual(self.ask_bash("judge", "--keep-bundles", ""), {"all", "best"})
        self.assertEqual(self.ask_bash("selftest", "--shape", ""), set())
        self.assertEqual(self.ask_bash("doctor", ""), set())

    # What is done is the first argument of some commands.
    ACTIONS = {"token": {"add", "list", "revoke"}, "bar": {"add", "list", "remove"}}

    def test_words_of_an_argument_are_completed_in_bash(self):
        for command, actions in self.ACTIONS.items():
            self.assertEqual(self.ask_bash(command, ""), actions)
            self.assertEqual(self.ask_bash(command, "l"), {"list"})
        self.assertEqual(self.ask_bash("token", "--results", "folder", ""), self.ACTIONS["token"])
        self.assertEqual(self.ask_bash("token", "--results", "=", "folder", "--json", ""), self.ACTIONS["token"])
        self.assertEqual(self.ask_bash("token", "add", ""), set())
        self.assertEqual(self.ask_bash("bar", "list", "f"), {"folder"})
        self.assertEqual(self.ask_bash("score", "one.json", "o"), {"one.json"})
        with_words = {command for command in self.commands()
                      if any(argument.is_words for argument in self.options_of(command)[1])}
        self.assertEqual(with_words, set(self.ACTIONS))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_words_of_an_argument_are_completed_in_fish(self):
        for command, actions in self.ACTIONS.items():
            self.assertEqual(self.ask_fish(command + " ") & actions, actions)
        self.assertEqual(self.ask_fish("token "), self.ACTIONS["token"])
        self.assertEqual(self.ask_fish("token add "), set())

    def test_words_of_an_argument_are_completed_in_zsh(self):
        with open(ZSH) as file:
            text = file.read()
        for command, actions in self.ACTIONS.items():
            of = re.search(r"^    %s\)\n(.*?);;$" % command, text, re.MULTILINE | re.DOTALL).group(1)
            # An argument of _arguments by its place; ":value:" alone would be a message without a name.
            self.assertRegex(of, r"'1:[^:']+:\((add|list|remove|revoke| )+\)'")

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        commands = set(self.commands())
        self.assertEqual(self.ask_fish(""), commands)
        for command in commands:
            names, words = self.expected(command)
            self.assertEqual(self.ask_fish(command + " -"), names)
            for option, of in words.items():
                self.assertEqual(self.ask_fish("%s %s " % (command, option)), of)
        self.assertIn("one.json", self.ask_fish("score o"))
        self.assertEqual(self.ask_fish("judge --from "), {"folder/", "tmp/"})
        self.assertEqual(self.ask_fish("judge --keep-bundles "), {"all", "best"})
        self.assertEqual(self.ask_fish("selftest --shape "), set())

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_it(self):
        subprocess.run(["zsh", "-n", ZSH], check=True)

    def test_each_script_has_every_option(self):
        for path in (ZSH, FISH):
            with open(path) as file:
                text = file.read()
            for command in self.commands():
                for option in self.options_of(command)[0]:
                    name = option.names.split(",")[-1]
                    self.assertIn(" -l " + name[2:] + " " if path == FISH else name, text)


if __name__ == "__main__":
    _kjudge.main()
