# SPDX-License-Identifier: Apache-2.0
"""Imported before all else by what kjudge starts with the python3 of PATH: an old one is told as that,
not as an error of the code that it cannot read."""

import sys

if sys.version_info < (3, 9):  # as harness.py and submit.py say
    sys.exit("python3 is %s, Python %d.%d; kjudge needs 3.9 or newer: have PATH lead to one" % (
        (sys.executable,) + sys.version_info[:2]))
