# SPDX-License-Identifier: Apache-2.0
"""The manual names every command and option of the program, and no other."""

import os
import re

import _kjudge


class Manual(_kjudge.Case):
    def test_commands_and_options(self):
        with open(os.path.join(_kjudge.ROOT, "man", "kjudge.1")) as file:
            page = file.read()
        text, _ = self.run_kjudge("--help")
        commands = re.findall(r"^  (\w+)  ", text[text.index("Subcommands:"):], re.MULTILINE)
        self.assertEqual(set(commands), set(re.findall(r"^\.Ss (\w+)", page, re.MULTILINE)))
        options = set()
        for command in commands:
            text, _ = self.run_kjudge(command, "--help")
            options |= set(re.findall(r"--([a-z]+)", text[text.index("Options:"):]))
        named = set(re.findall(r"\\-([a-z]+)", page))
        self.assertEqual(options - {"help"}, named)


if __name__ == "__main__":
    _kjudge.main()
