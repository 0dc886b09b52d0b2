#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a submission on this machine as the judge would: python harness.py submission.py

What follows the submission's name goes to `kjudge selftest`: --shape S, --pairs N, --eager, --json.
"""

import os
import sys

MISSING = """kjudge: {path}: not found
harness.py needs the kjudge program beside it. Packages ship it in bin/; from source, build it with
  cmake --preset release && cmake --build build
and run build/lib/kjudge/harness/harness.py, or say where it is with KJUDGE=/path/to/kjudge."""


def find_kjudge():
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("KJUDGE")
    places = [named] if named else [
        os.path.join(here, "bin", "kjudge"),  # a package
        os.path.normpath(os.path.join(here, "..", "bin", "kjudge")),
        os.path.normpath(os.path.join(here, "..", "..", "..", "bin", "kjudge")),  # an installation
    ]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    sys.exit(MISSING.format(path=places[0]))


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    kjudge = find_kjudge()
    try:
        os.execv(kjudge, [kjudge, "selftest"] + arguments)
    except OSError as error:
        # A binary of a newer glibc starts, and is ended by its loader; this is another machine's.
        sys.exit("kjudge: %s: %s; build it on this machine" % (kjudge, error.strerror))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
