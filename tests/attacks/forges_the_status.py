# SPDX-License-Identifier: Apache-2.0
"""Writes status and bundle itself, and ends before the harness can.

verdict: refused
"""

import json
import os

def prepare(ctx):
    folder = os.path.join(os.path.dirname(os.getcwd()), "made")
    with open(os.path.join(folder, "bundle.kjb"), "wb") as file:
        file.write(b"KJUDGE" + bytes(1 << 16))
    with open(os.path.join(folder, "status.json"), "w") as file:
        json.dump({"format": "kjudge-capture-status/1", "verdict": "accepted", "rule": "", "message": "",
                   "traceback": "", "seconds": {}}, file)
    os._exit(0)


def kernel_fn(state, inputs, outputs):
    pass
