# SPDX-License-Identifier: Apache-2.0
"""states.py KJUDGE RESULTS CHALLENGE: adds to what _results_directory.py made that which organizers and
contestants bring: bars, an evaluation that does not count, an unverified one, code that is published, a
bounty. Names and files try to be more than text."""

import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOSTILE = "<script>document.title='taken'</script><b onclick=\"x\">"


def change(path, **fields):
    with open(path) as file:
        value = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(value, **fields), file)


def main(kjudge, results, challenge):
    shutil.copytree(os.path.join(ROOT, "packages", "softmax"), challenge)
    change(os.path.join(challenge, "challenge.json"), publish_code="all", bounty="a prize " + HOSTILE)
    for number, fields in ((1, {}), (2, {"publish": False}), (9, {"keep": False})):
        submission = os.path.join(results, "submissions", str(number))
        change(os.path.join(submission, "submission.json"), challenge="softmax", **fields)
        if number == 1:
            os.makedirs(os.path.join(submission, "files", "sub"))
            for name in ("submission.py", "sub/\u202e<b>.py"):
                with open(os.path.join(submission, "files", name), "w") as file:
                    file.write("# kjudge_license: MIT\n# kjudge_label: an LLM\n</pre>%s\x1b\n" % HOSTILE + "x" * 500)
    for arguments in (["bar", "add", results, "--name", "a library " + HOSTILE, "--variant", "softmax@1", "--speedup",
                       "2.5", "--source", "https://example.org/" + HOSTILE, "--date", "2026-11-01"],
                      ["bar", "add", results, "--name", "mine", "--variant", "softmax@1", "--speedup", "1.2",
                       "--source", "a command", "--measured"],
                      ["invalidate", results, "--run", "linus", "--reason", "its fan was off " + HOSTILE]):
        done = subprocess.run([kjudge, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):  # 3: two of its files cannot be read
            sys.exit("%s: %s" % (arguments, done.stderr))


if __name__ == "__main__":
    main(*sys.argv[1:])
