# SPDX-License-Identifier: Apache-2.0
"""Puts a link where the bundle belongs.

verdict: refused
"""

import json
import os

def prepare(ctx):
    folder = os.path.join(os.path.dirname(os.getcwd()), "made")
    os.symlink("/etc/passwd", os.path.join(folder, "bundle.kjb"))
    with open(os.path.join(folder, "status.json"), "w") as file:
        json.dump({"format": "kjudge-capture-status/1", "verdict": "accepted"}, file)
    os._exit(0)


def kernel_fn(state, inputs, outputs):
    pass
